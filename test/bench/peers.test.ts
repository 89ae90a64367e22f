import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
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

/** Sets a variable, which adapters inherit, until the test ends; only in serial tests. */
function setEnvironment(t: ExecutionContext, name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  t.teardown(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

test.serial('the rembg adapter drives its server: one start, the network named, PNG back', async (t) => {
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
  setEnvironment(t, 'REMBG', program);
  const peer = await openPeer(path.join(peersFolder, 'rembg'), jpeg);
  t.like(peer.about, { licence: 'MIT', weights: 'isnet' });
  t.true((await peer.run(jpeg, path.join(folder, 'out.png'))) > 0);
  await peer.close();
});

test.serial('the rembg adapter does not take another program on its port for it', async (t) => {
  const folder = testFolder(t);
  const program = path.join(folder, 'rembg');
  const began = path.join(folder, 'began');
  // Answers 404 first, as another server would.
  writeFileSync(
    program,
    `#!${process.execPath}
const { createServer } = require('node:http');
const { writeFileSync } = require('node:fs');
const [, , , , port] = process.argv.slice(2);
let asked = 0;
createServer((req, res) => {
  asked += 1;
  if (req.url === '/api/remove') writeFileSync(${JSON.stringify(began)}, String(asked));
  res.writeHead(asked > 2 ? 200 : 404).end('PNG');
}).listen(Number(port), '127.0.0.1');
`,
  );
  chmodSync(program, 0o755);
  const jpeg = path.join(folder, 'in.jpg');
  writeFileSync(jpeg, await scene());
  setEnvironment(t, 'REMBG', program);
  const peer = await openPeer(path.join(peersFolder, 'rembg'), jpeg);
  t.is(readFileSync(began, 'utf8'), '4');
  await peer.close();
});

for (const { name, variable, licence, weights, argument } of [
  {
    name: 'rembg-process',
    variable: 'REMBG_PYTHON',
    licence: 'MIT',
    weights: 'isnet',
    argument: 'isnet-general-use',
  },
  {
    name: 'transparent-background',
    variable: 'TRANSPARENT_BACKGROUND_PYTHON',
    licence: 'MIT',
    weights: 'random',
    argument: 'random',
  },
  {
    name: 'carvekit',
    variable: 'CARVEKIT_PYTHON',
    licence: 'Apache-2.0',
    weights: 'random',
    argument: 'random',
  },
])
  test.serial(
    `the adapter ${name} keeps one Python process and passes its PNG and its time on`,
    async (t) => {
      const folder = testFolder(t);
      const program = path.join(folder, 'python3');
      // As much of the worker as the adapter needs: it is given the worker's file and the weights.
      writeFileSync(
        program,
        `#!${process.execPath}
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { createInterface } = require('node:readline');
const [worker, weights] = process.argv.slice(2);
if (!worker.endsWith('/${name}/worker.py') || !existsSync(worker) || weights !== '${argument}') process.exit(3);
console.log('a line of a library');
console.log('{"ready": true}');
let count = 0;
createInterface({ input: process.stdin }).on('line', (line) => {
  const { file, out } = JSON.parse(line);
  count += 1;
  writeFileSync(out, 'PNG ' + count + ' of ' + readFileSync(file).length);
  console.log(JSON.stringify({ ms: 12.5 }));
});
`,
      );
      chmodSync(program, 0o755);
      const jpeg = path.join(folder, 'in.jpg');
      const bytes = await scene();
      writeFileSync(jpeg, bytes);
      setEnvironment(t, variable, program);
      setEnvironment(t, 'PEER_WEIGHTS', 'random');
      const out = path.join(folder, 'out.png');
      const peer = await openPeer(path.join(peersFolder, name), jpeg);
      t.like(peer.about, { licence, weights });
      t.is(await peer.run(jpeg, out), 12.5);
      // The first one was the warm-up.
      t.is(readFileSync(out, 'utf8'), `PNG 2 of ${bytes.length}`);
      await peer.close();

      writeFileSync(program, `#!${process.execPath}\nprocess.exit(1)\n`);
      await t.throwsAsync(() => openPeer(path.join(peersFolder, name), jpeg), {
        message: /without an answer/,
      });
    },
  );

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
