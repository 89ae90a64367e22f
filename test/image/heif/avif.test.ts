import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import sharp from 'sharp';
import { decode, openImage } from '../../../src/image/decode.ts';
import { ImageError, NoThreadError } from '../../../src/image/errors.ts';
import { avifBytes, decodeAvif } from '../../../src/image/heif/decodeAvif.ts';
import { colourItem, writeAvif } from '../../../src/image/heif/writeAvif.ts';
import { configureLibvips } from '../../../src/image/libvips.ts';
import { probe } from '../../../src/image/probe.ts';
import { contractLimits, type ProbeLimits } from '../../../src/image/types.ts';
import { eventually } from '../../fixtures/service.ts';

const limits: ProbeLimits = { ...contractLimits, formats: ['avif'] };

/** A soft disc over noise, of `side` pixels in both directions. */
async function file(side: number, options: { alpha?: boolean; gray?: boolean } = {}): Promise<Buffer> {
  const channels = options.alpha ? 4 : 3;
  const noise = { type: 'gaussian', mean: 128, sigma: 40 } as const;
  const plain = sharp({ create: { width: side, height: side, channels, background: '#4080c0', noise } });
  const image = options.gray ? plain.toColourspace('b-w') : plain.withIccProfile('p3');
  return await image.avif({ quality: 90, effort: 0 }).toBuffer();
}

/** Processes that this one has started and that still run. */
const children = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const [, state, parent] = /\) (\S) (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
        return Number(parent) === process.pid && state !== 'Z';
      } catch {
        return false;
      }
    })
    .map(Number);

/** The process that a decoding just started runs in. */
async function startedChild(before: readonly number[]): Promise<number> {
  const added = () => children().filter((pid) => !before.includes(pid));
  await eventually(() => added().length > 0);
  return added()[0] as number;
}

test.before(() => configureLibvips({ formats: ['avif', 'png'] }));

for (const [what, bytes] of [
  ['a photo with a profile', file(300)],
  ['one with alpha', file(300, { alpha: true })],
  ['a gray one', file(300, { gray: true })],
] as const)
  test.serial(`${what} has the pixels that libvips gives in this process`, async (t) => {
    const header = await probe(await bytes, limits);
    const { data, width, height } = await decode(await bytes, header, header);
    t.is(`${width}x${height}`, '300x300');
    t.deepEqual(Buffer.from(data), await openImage(await bytes, header, header).toBuffer());
    const small = await decode(await bytes, header, { width: 30, height: 30 });
    t.is(small.data.length, 30 * 30 * 4);
  });

test.serial(
  'a reduced image comes from the process reduced, and memory stays within its bound',
  async (t) => {
    const bytes = await file(1600, { alpha: true });
    const header = await probe(bytes, limits);
    const target = { width: 400, height: 400 };
    const before = children();
    const decoding = decode(bytes, header, target);
    const status = `/proc/${await startedChild(before)}/status`;
    let peak = 0;
    const look = setInterval(() => {
      try {
        peak = Math.max(peak, 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(status, 'utf8'))?.[1] ?? 0));
      } catch {
        // The process has ended.
      }
    }, 5);
    const { data } = await decoding.finally(() => clearInterval(look));
    t.deepEqual(Buffer.from(data), await openImage(bytes, header, target).toBuffer());
    t.true(peak > 30e6, `${peak}`);
    t.true(peak < avifBytes(header, target, bytes), `${peak}`);
  },
);

/** An AVIF of one colour that states these code points. */
async function coded(background: readonly [number, number, number], primaries: number, transfer: number) {
  const [r, g, b] = background;
  const plain = sharp({ create: { width: 64, height: 64, channels: 3, background: { r, g, b } } });
  const image = colourItem(
    await plain.avif({ quality: 100, effort: 0, chromaSubsampling: '4:4:4' }).toBuffer(),
  );
  const body = Buffer.from([...Buffer.from('nclx'), 0, primaries, 0, transfer, 0, 6, 0x80]);
  return writeAvif({ ...image, properties: [...image.properties, { type: 'colr', body }] });
}

for (const [what, primaries, transfer, given, expected] of [
  ['sRGB', 1, 13, [100, 180, 90], [100, 180, 90]],
  ['sRGB by the curve of television, which displays show alike', 1, 1, [100, 180, 90], [100, 180, 90]],
  ['code points that are unknown', 2, 2, [100, 180, 90], [100, 180, 90]],
  // By the matrix of CSS Color 4 from Display P3: 1.2249, -0.2247, 0; -0.0420, 1.0419, 0; -0.0197, -0.0786, 1.0979.
  ['Display P3', 12, 13, [100, 180, 90], [65, 182, 77]],
  // 203 cd/m², white of a page, by SMPTE ST 2084 a code of 0.58.
  ['light of HDR', 9, 16, [148, 148, 148], [242, 242, 242]],
] as const)
  test.serial(`colours are sRGB, also of a file that states ${what}`, async (t) => {
    const bytes = await coded(given, primaries, transfer);
    const header = await probe(bytes, limits);
    const { data } = await decode(bytes, header, header);
    for (const [i, value] of expected.entries())
      t.true(Math.abs((data[i] ?? 0) - value) <= 2, `${[...data.subarray(0, 3)]}`);
  });

test.serial('a file cut short, and one whose data is damaged, are refused with a sentence', async (t) => {
  const bytes = await file(200);
  const header = await probe(bytes, limits);
  const damaged = Buffer.from(bytes);
  damaged.fill(0xff, bytes.length - 2000);
  for (const wrong of [bytes.subarray(0, -1000), damaged]) {
    const error = await t.throwsAsync(decodeAvif(wrong, header, header, {}), { instanceOf: ImageError });
    t.is(error?.code, 'failed_to_read_image');
  }
  t.is((await decode(bytes, header, header)).width, 200);
});

test.serial('the time limit and the signal end the process', async (t) => {
  const bytes = await file(1500);
  const header = await probe(bytes, limits);
  const before = children();
  await t.throwsAsync(decodeAvif(bytes, header, header, { timeoutSeconds: 0.001 }), { message: /in time/ });
  const abort = new AbortController();
  const running = decodeAvif(bytes, header, header, { signal: abort.signal });
  await startedChild(before);
  abort.abort(new Error('client gone'));
  await t.throwsAsync(running, { message: 'client gone' });
  await t.throwsAsync(decodeAvif(bytes, header, header, { signal: abort.signal }), {
    message: 'client gone',
  });
  t.deepEqual(children(), before);
});

test.serial('a decoder that crashes costs its image alone, and the end of it is watched', async (t) => {
  const bytes = await file(1500);
  const header = await probe(bytes, limits);
  const before = children();
  let [watched, ended] = [0, 0];
  const watch = (ms: number) => {
    watched = ms;
    return () => {
      ended += 1;
    };
  };
  const running = decodeAvif(bytes, header, header, { watch });
  process.kill(await startedChild(before), 'SIGSEGV');
  const error = await t.throwsAsync(running, { instanceOf: ImageError });
  t.is(error?.code, 'failed_to_read_image');
  t.regex(String(error?.cause), /SIGSEGV/);
  t.true(watched > 10_000);
  t.is(ended, 1);
  t.is((await decodeAvif(bytes, header, header, { watch })).width, 1500);
  t.is(ended, 2);
});

test.serial('where the system ends the process, the image is not the reason', async (t) => {
  const bytes = await file(1500);
  const header = await probe(bytes, limits);
  const before = children();
  const running = decodeAvif(bytes, header, header, {});
  process.kill(await startedChild(before), 'SIGKILL');
  await t.throwsAsync(running, { instanceOf: NoThreadError });
});

/** Decodes the AVIF of its argument twice while every descriptor but one is taken, and prints the names of the errors. */
const withoutDescriptors = `
  import { openSync, readFileSync } from 'node:fs';
  const [decodeAvif, probe, types] = await Promise.all(
    ${JSON.stringify(['image/heif/decodeAvif.js', 'image/probe.js', 'image/types.js'])}.map(
      (name) => import(new URL('../../../src/' + name, ${JSON.stringify(import.meta.url)}))));
  const file = readFileSync(process.argv[1]);
  const header = await probe.probe(file, { ...types.contractLimits, formats: ['avif'] });
  try { for (;;) openSync('/dev/null'); } catch {}
  for (let i = 0; i < 2; i += 1)
    await decodeAvif.decodeAvif(file, header, header, {}).catch((error) => console.log(error.name));
`;

test.serial('a server without descriptors for a process refuses the image and lives on', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-avif-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const name = path.join(folder, 'a.avif');
  await writeFile(name, await file(100));
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    'ulimit -n 64; exec "$@"',
    'sh',
    process.execPath,
    '--input-type=module',
    '-e',
    withoutDescriptors,
    name,
  ]);
  t.is(stdout, 'NoThreadError\nNoThreadError\n');
});

test.serial('what stops the server with its processes does not stop what it finishes', async (t) => {
  const bytes = await file(1500);
  const header = await probe(bytes, limits);
  const before = children();
  const running = decodeAvif(bytes, header, header, {});
  const child = await startedChild(before);
  // SIGHUP, the last one.
  const catches = () => {
    const [, mask = '0'] = /SigCgt:\s*([0-9a-f]+)/.exec(readFileSync(`/proc/${child}/status`, 'utf8')) ?? [];
    return (BigInt(`0x${mask}`) & 1n) === 1n;
  };
  await eventually(catches);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(child, signal);
  t.is((await running).width, 1500);
});
