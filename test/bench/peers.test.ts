import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { peersFolder } from '../../bench/lib/paths.ts';
import { agreement, matteOf } from '../../bench/lib/peer/agreement.ts';
import { lookAt, worstWindow } from '../../bench/lib/peer/look.ts';
import { missing, openPeer } from '../../bench/lib/peer/peer.ts';
import { scene } from '../fixtures/images.ts';
import { testFolder } from '../support/stores.ts';

const matte = (width: number, ...alpha: number[]) => ({
  alpha: Uint8Array.from(alpha),
  width,
  height: alpha.length / width,
});

test('agreement of mattes by hand', (t) => {
  const { meanDifference, opposed, overlap } = agreement(
    matte(2, 0, 255, 200, 100),
    matte(2, 0, 255, 0, 110),
  );
  t.is(meanDifference, 210 / 4);
  t.is(opposed, 1 / 4);
  t.is(overlap, 1 / 2);
  t.is(agreement(matte(1, 0, 3), matte(1, 5, 0)).overlap, 1);
  t.throws(() => agreement(matte(2, 0, 0), matte(1, 0, 0)), { message: /1x2/ });
});

async function peerIn(folder: string, body: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(path.join(folder, 'peer.js'), body);
  const jpeg = path.join(folder, 'in.jpg');
  writeFileSync(jpeg, await scene());
  return jpeg;
}

test('a peer runs in a process of its own and may print anything else', async (t) => {
  const folder = testFolder(t);
  const jpeg = await peerIn(
    folder,
    `import { readFile } from 'node:fs/promises';
    export const about = { title: 'test', licence: 'none', weights: 'none' };
    let warm;
    export const prepare = async ({ warmUp }) => { warm = warmUp; process.stdout.write('loading {'); };
    export const run = async (file) => {
      console.log('{"ms":-1}');
      if (file !== warm) throw new Error('another file');
      return { png: Buffer.from(String((await readFile(file)).length)), ms: 7 };
    };`,
  );
  const peer = await openPeer(folder, jpeg);
  t.is(peer.about.title, 'test');
  t.is(await peer.run(jpeg, path.join(folder, 'out')), 7);
  t.true((await peer.peak()) > 10);
  await t.throwsAsync(() => peer.run('other', path.join(folder, 'out')), { message: 'test: another file' });
  await peer.close();
});

test('a peer that cannot be prepared reports the reason', async (t) => {
  const folder = testFolder(t);
  const jpeg = await peerIn(
    folder,
    `export const about = {};
    export const prepare = async () => { throw new Error('no such program'); };`,
  );
  await t.throwsAsync(() => openPeer(folder, jpeg), { message: 'no such program' });
  writeFileSync(path.join(folder, 'peer.js'), 'throw new Error("broken module")');
  await t.throwsAsync(() => openPeer(folder, jpeg), { message: /broken module/ });
});

test('a peer whose packages are not installed is reported by name', (t) => {
  const folder = testFolder(t);
  t.is(missing(folder), 'there is no peer.js');
  writeFileSync(path.join(folder, 'peer.js'), '');
  writeFileSync(path.join(folder, 'package.json'), '{"dependencies":{"@a/b":"1.0.0"}}');
  t.regex(missing(folder) ?? '', /not installed/);
  mkdirSync(path.join(folder, 'node_modules', '@a', 'b'), { recursive: true });
  t.is(missing(folder), undefined);
});

test('the rembg adapter drives its server: one start, the network named, PNG back', async (t) => {
  const folder = testFolder(t);
  const program = path.join(folder, 'rembg');
  // Implements as much of `rembg s` as the adapter needs.
  writeFileSync(
    program,
    `#!${process.execPath}
const { createServer } = require('node:http');
const [verb, , host, , port, ui] = process.argv.slice(2);
if (verb !== 's' || ui !== '--no-ui') process.exit(3);
createServer(async (req, res) => {
  if (req.url === '/api') return res.end('docs');
  const form = await new Response(req, { headers: req.headers }).formData();
  const known = req.method === 'POST' && req.url === '/api/remove' && form.get('model') === 'isnet-general-use';
  res.writeHead(known ? 200 : 422, { 'content-type': 'image/png' });
  res.end('PNG of ' + form.get('file').size);
}).listen(Number(port), host);
`,
  );
  chmodSync(program, 0o755);
  const jpeg = path.join(folder, 'in.jpg');
  const bytes = await scene();
  writeFileSync(jpeg, bytes);
  const before = process.env['REMBG'];
  process.env['REMBG'] = program;
  t.teardown(() => {
    if (before === undefined) delete process.env['REMBG'];
    else process.env['REMBG'] = before;
  });
  const peer = await openPeer(path.join(peersFolder, 'rembg'), jpeg);
  t.like(peer.about, { licence: 'MIT', weights: 'isnet' });
  t.true((await peer.run(jpeg, path.join(folder, 'out.png'))) > 0);
  await peer.close();
});

test('the window with the largest difference is found, inside the image', (t) => {
  const blank = (width: number, height: number) => ({ alpha: new Uint8Array(width * height), width, height });
  const [a, b] = [blank(50, 40), blank(50, 40)];
  for (const [x, y] of [
    [31, 22],
    [33, 24],
    [35, 27],
  ] as const)
    b.alpha[y * 50 + x] = 9;
  b.alpha[0] = 20;
  const { left, top, width, height } = worstWindow(a, b, 10);
  t.deepEqual([width, height], [10, 10]);
  t.true(left <= 31 && left + 10 > 35 && top <= 22 && top + 10 > 27);
  t.deepEqual(worstWindow(blank(3, 2), blank(3, 2), 10), { left: 0, top: 0, width: 3, height: 2 });
});

test('images for viewing are embedded in the page', async (t) => {
  const width = 300;
  const height = 240;
  const png = async (left: number) =>
    sharp({ create: { width, height, channels: 4, background: '#f00' } })
      .composite([
        {
          input: { create: { width: 100, height, channels: 4, background: '#000' } },
          left,
          top: 0,
          blend: 'dest-out',
        },
      ])
      .png()
      .toBuffer();
  const [ours, theirs] = [await png(0), await png(200)];
  const images = await lookAt(
    await scene({ width, height }),
    { png: ours, matte: await matteOf(ours) },
    { png: theirs, matte: await matteOf(theirs), title: 'other' },
  );
  t.is(images.length, 6);
  for (const { src } of images) {
    t.regex(src, /^data:image\/(webp|jpeg|png);base64,/);
    t.truthy((await sharp(Buffer.from(src.split(',')[1] ?? '', 'base64')).metadata()).width);
  }
});
