import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { deflateSync, gzipSync } from 'node:zlib';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { type Client, openClient } from '../../bench/lib/client.ts';
import { insertPngChunk, pngChunk } from '../fixtures/bytes.ts';
import { modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { PRIMARIES, rgbProfile } from '../fixtures/icc.ts';
import { scene } from '../fixtures/images.ts';
import { processState } from '../fixtures/process.ts';

/**
 * Bodies by which anyone, or the owner of a key, might take down a real server. Each attack ends before the next
 * begins. Meanwhile other clients are answered, no stretch of work blocks the server's only thread for longer than
 * others can wait, and memory stays below its limit.
 */
const megabytes = 1e6;
const json = 'application/json';
const limit = 1200;
/** Megabytes (10^6) above the limit that the allocator and uncounted memory may take. */
const slack = 100;
/** Milliseconds that other clients may have to wait. */
const longestBlock = 250;

interface Target {
  readonly server: Serving;
  readonly key: string;
  readonly client: Client;
  readonly image: Buffer;
  /** Stretches of more than 25 ms since the last call. */
  readonly blocks: () => readonly number[];
}

const test = anyTest as TestFn<Target>;

/** Stands in for the test that a fixture belongs to; here the fixture serves all tests. */
const cleanups: (() => unknown)[] = [];
const all = {
  teardown: (cleanup: () => unknown) => void cleanups.unshift(cleanup),
} as unknown as ExecutionContext;

test.before(async (t) => {
  const data = temporaryFolder(all);
  const probe = path.join(data, 'loop');
  writeFileSync(probe, '');
  const server = await startServing(all, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_MEMORY_LIMIT: `${limit}M`,
    CUTOUT_RATE_LIMIT: '0',
    CUTOUT_KEEP_SECONDS: '0',
    CUTOUT_TIMEOUT: '60',
    LOOP_PROBE: probe,
    NODE_OPTIONS: `--import ${fileURLToPath(new URL('../fixtures/loopProbe.js', import.meta.url))}`,
    ...(existsSync('/usr/lib/x86_64-linux-gnu/libjemalloc.so.2')
      ? { LD_PRELOAD: '/usr/lib/x86_64-linux-gnu/libjemalloc.so.2' }
      : { MALLOC_ARENA_MAX: '2' }),
  });
  const key = readFileSync(path.join(data, 'local-key'), 'utf8').trim();
  let read = 0;
  const client = openClient({ url: server.url, key });
  const image = await scene();
  const blocks = () => {
    const found = readFileSync(probe, 'utf8').split('\n').filter(Boolean).map(Number);
    const since = found.slice(read);
    read = found.length;
    return since;
  };
  // Compiled, warmed up, and with a heap of the usual size.
  for (let i = 0; i < 20; i++) await client.cutout(image, { size: 'preview' });
  blocks();
  const largest = Buffer.concat([image, Buffer.alloc(20 * megabytes)]).toString('base64');
  for (let i = 0; i < 3; i++)
    await fetch(`${server.url}/v1.0/removebg`, {
      method: 'POST',
      headers: { 'X-Api-Key': key, 'Content-Type': json },
      body: JSON.stringify({ image_file_b64: largest }),
    }).then((answer) => answer.arrayBuffer());
  const longest = Math.max(0, ...blocks());
  t.log(`a legal body of ${largest.length / megabytes} MB: ${longest} ms`);
  t.true(longest <= longestBlock, `${longest} ms`);
  t.context = { server, key, client, image, blocks };
});

test.after.always(async (t) => {
  await t.context.client?.close();
  for (const cleanup of cleanups) await cleanup();
});

/** What the server answered, and whether it cut the connection. */
interface Outcome {
  readonly text: string;
}

/**
 * Sends pieces for as long as the server takes them and reads its answer. Ends when the server closes the connection, or
 * when everything is sent and answered.
 */
function attack(port: number, pieces: Iterable<string | Buffer>): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1');
    let text = '';
    let sent = false;
    const over = () => {
      socket.destroy();
      resolve({ text });
    };
    const answered = () => /^HTTP\/1\.1 [2-5]/m.test(text);
    socket.on('data', (piece) => {
      text += piece.toString('latin1');
      if (sent && answered()) over();
    });
    socket.on('error', over);
    socket.on('close', over);
    const iterator = pieces[Symbol.iterator]();
    const send = () => {
      while (!socket.destroyed) {
        const next = iterator.next();
        if (next.done) {
          sent = true;
          if (answered()) over();
          return;
        }
        if (!socket.write(next.value, 'latin1')) {
          socket.once('drain', send);
          return;
        }
      }
    };
    socket.once('connect', send);
  });
}

const head = (route: string, headers: Readonly<Record<string, string>>): string =>
  [`POST ${route} HTTP/1.1`, 'Host: localhost', ...Object.entries(headers).map((pair) => pair.join(': '))]
    .join('\r\n')
    .concat('\r\n\r\n');

const chunk = (data: string | Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(`${data.length.toString(16)}\r\n`),
    Buffer.from(data as string, 'latin1'),
    Buffer.from('\r\n'),
  ]);

function* repeated(piece: string | Buffer, bytes: number): Generator<Buffer> {
  const block = Buffer.concat(
    Array.from({ length: Math.ceil(65_536 / piece.length) }, () => Buffer.from(piece as string, 'latin1')),
  );
  for (let sent = 0; sent < bytes; sent += block.length) yield block;
}

/** The same as chunks of `size` bytes. */
function* chunked(pieces: Iterable<Buffer | string>, size = 65_536): Generator<Buffer> {
  for (const piece of pieces) {
    const bytes = Buffer.from(piece as string, 'latin1');
    const begin = Buffer.from(`${size.toString(16)}\r\n`);
    const each = begin.length + size + 2;
    const whole = Math.floor(bytes.length / size);
    const out = Buffer.alloc(whole * each);
    for (let i = 0; i < whole; i += 1) {
      begin.copy(out, i * each);
      bytes.copy(out, i * each + begin.length, i * size, (i + 1) * size);
      out.write('\r\n', (i + 1) * each - 2);
    }
    yield out;
    const rest = bytes.subarray(whole * size);
    if (rest.length > 0) yield chunk(rest);
  }
  yield Buffer.from('0\r\n\r\n');
}

const form = 'multipart/form-data; boundary=b';
const part = (disposition: string, more = '') =>
  `--b\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n`;

function* joined(...parts: readonly Iterable<Buffer | string>[]): Generator<Buffer | string> {
  for (const pieces of parts) yield* pieces;
}

interface Attack {
  readonly title: string;
  readonly route?: string;
  readonly type: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body; in chunks unless its length is announced. */
  readonly body: () => Iterable<Buffer | string>;
  /** Bytes per chunk. */
  readonly chunks?: number;
  /** Sent with Content-Length. */
  readonly announced?: boolean;
  /** Number of concurrent requests. */
  readonly times?: number;
  /** Expected statuses; `none`: a client that never stops sending may find the connection closed before it reads. */
  readonly status: RegExp;
}

const quadratic = 'filename="'.repeat(40_000);
const urlencoded = 'application/x-www-form-urlencoded';
/** 32 MB, as many as a JSON may have. */
const most = 32 * 2 ** 20 - 1000;

const attacks: readonly Attack[] = [
  {
    title: 'one header of a part, 560 MB, without a key',
    route: '/console/api/link',
    type: form,
    body: () => joined(['--b\r\nX-a: '], repeated('A', 560 * megabytes)),
    status: /415|none/,
  },
  {
    title: 'one header of a part, 560 MB',
    type: form,
    body: () => joined(['--b\r\nX-a: '], repeated('A', 560 * megabytes)),
    status: /400|none/,
  },
  {
    title: 'a part with very many headers',
    type: form,
    body: () => joined(['--b\r\n'], repeated('X-a: b\r\n', 100 * megabytes)),
    status: /400|none/,
  },
  {
    title: 'a part with lines that are no headers',
    type: form,
    body: () => joined(['--b\r\n'], repeated('a\r\n', 100 * megabytes)),
    status: /400|none/,
  },
  {
    title: 'parts without end, each with many headers',
    type: form,
    body: () =>
      repeated(
        `${part('name="a"', 'X-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n'.repeat(30))}x\r\n`,
        100 * megabytes,
      ),
    status: /400/,
  },
  {
    title: 'file names in file names, without a key',
    route: '/console/api/link',
    type: form,
    body: () => [part(quadratic), 'x\r\n--b--\r\n'],
    announced: true,
    status: /415/,
  },
  {
    title: 'file names in file names',
    type: form,
    body: () => [part(quadratic), 'x\r\n--b--\r\n'],
    announced: true,
    status: /400/,
  },
  {
    title: 'many parts with file names in file names',
    type: form,
    body: () => joined(Array<string>(990).fill(`${part('filename="'.repeat(750))}x\r\n`), ['--b--\r\n']),
    status: /400/,
  },
  {
    title: 'a boundary that is everywhere, almost',
    type: `multipart/form-data; boundary=${'-'.repeat(69)}b`,
    body: () =>
      joined(
        [`--${'-'.repeat(69)}b\r\nContent-Disposition: form-data; name="a"\r\n\r\n`],
        repeated('\r\n-', 20 * megabytes),
      ),
    chunks: 997,
    status: /400/,
  },
  {
    title: 'a boundary of 16 KB',
    type: `multipart/form-data; boundary=${'-'.repeat(16_000)}`,
    body: () => repeated('-', 10 * megabytes),
    chunks: 15_000,
    status: /400/,
  },
  {
    title: 'the boundary again and again, in single bytes',
    type: form,
    body: () => joined(repeated('--b\r\n\r\n\r\n', 0.2 * megabytes), ['--b--\r\n']),
    chunks: 1,
    status: /400/,
  },
  {
    title: 'millions of parts that carry nothing',
    type: form,
    body: () => joined(repeated('--b\r\n', 20 * megabytes), ['--b--\r\n']),
    status: /400|none/,
  },
  {
    title: 'millions of parts without a name',
    type: form,
    body: () => joined(repeated('--b\r\nX: y\r\n\r\nz\r\n', 20 * megabytes), ['--b--\r\n']),
    status: /400|none/,
  },
  {
    title: 'a text field in single bytes',
    type: form,
    body: () => joined([part('name="a"')], repeated('A', 0.2 * megabytes), ['\r\n--b--\r\n']),
    chunks: 1,
    times: 20,
    status: /400[\s\S]*chunks is 1 bytes/,
  },
  {
    title: 'single bytes where none is read',
    route: '/v1.0/account',
    type: json,
    body: () => repeated('A', 0.2 * megabytes),
    chunks: 1,
    times: 20,
    status: /40\d/,
  },
  {
    title: 'JSON in single bytes',
    type: json,
    body: () => joined(['{"a":"'], repeated('A', 0.2 * megabytes), ['"}']),
    chunks: 1,
    times: 20,
    status: /400[\s\S]*chunks is 1 bytes/,
  },
  {
    title: 'a thousand small text fields, none of which takes more than it has',
    type: form,
    body: () =>
      joined(
        Array.from({ length: 999 }, (_, i) => `${part(`name="f${i}"`)}x\r\n`),
        ['--b--\r\n'],
      ),
    times: 10,
    status: /400|503/,
  },
  {
    title: 'gzip that becomes 32 MB of brackets',
    type: json,
    headers: { 'Content-Encoding': 'gzip' },
    body: () => [gzipSync('['.repeat(most))],
    announced: true,
    times: 4,
    status: /415/,
  },
  {
    title: 'JSON: brackets',
    type: json,
    body: () => repeated('[', most),
    announced: true,
    status: /400/,
  },
  {
    title: 'JSON: objects in objects',
    type: json,
    body: () => repeated('{"a":', most),
    announced: true,
    status: /400/,
  },
  {
    title: 'JSON: keys',
    type: json,
    body: () => joined(['{'], repeated('"aaaaaaaa":1,', most - 70_000), ['"a":1}']),
    announced: true,
    status: /400/,
  },
  {
    title: 'JSON: a list of 16 million numbers',
    type: json,
    body: () => joined(['{"a":['], repeated('1,', most - 70_000), ['1]}']),
    announced: true,
    status: /400/,
  },
  {
    title: 'JSON: wide characters',
    type: json,
    body: () => joined(['{"image_file_b64":"\\u20ac'], repeated('A', most - 70_000), ['"}']),
    announced: true,
    times: 4,
    status: /400|503/,
  },
  {
    title: 'JSON: base64 of which every second character is a space',
    type: json,
    body: () => joined(['{"image_file_b64":"'], repeated('A ', most - 70_000), ['"}']),
    announced: true,
    times: 4,
    status: /400|503/,
  },
  ...(
    [
      ['roi', '1 ', 'invalid_roi'],
      ['crop_margin', '1px ', 'invalid_crop_margin'],
      ['position', 'a ', 'invalid_position'],
      ['scale', '1', 'invalid_scale'],
      ['bg_color', 'f', 'invalid_bg_color'],
      ['format', 'png', 'invalid_format'],
      ['shadow_type', 'drop', 'invalid_shadow_type'],
      ['shadow_opacity', '1', 'invalid_shadow_opacity'],
      ['bg_image_url', 'http://a/%', 'invalid_bg_image_url'],
    ] as const
  ).map(([field, piece, code]) => ({
    title: `JSON: ${field} of 30 MB`,
    type: json,
    body: () => joined([`{"image_file_b64":"aaaa","${field}":"`], repeated(piece, most - 70_000), ['"}']),
    announced: true,
    status: new RegExp(`400[\\s\\S]*"${code}"`),
  })),
  {
    title: 'JSON: an address of 30 MB',
    type: json,
    body: () => joined(['{"image_url":"http://'], repeated('a', most - 70_000), ['"}']),
    announced: true,
    status: /400[\s\S]*"invalid_image_url"/,
  },
  {
    title: 'JSON: 900 kinds of subject with names of 30 KB',
    type: json,
    body: () =>
      joined(
        ['{"shadow_type":{'],
        Array.from({ length: 900 }, (_, i) => `"${'k'.repeat(30_000)}${i}":"drop",`),
        ['"a":1}}'],
      ),
    announced: true,
    status: /400[\s\S]*"malformed_request"/,
  },
  {
    title: 'JSON: a number of 30 million digits',
    type: json,
    body: () => joined(['{"scale":'], repeated('9', most - 70_000), ['}']),
    announced: true,
    status: /400[\s\S]*"malformed_request"/,
  },
  {
    title: 'a form of 900 names of 30 KB',
    type: urlencoded,
    body: () => Array.from({ length: 900 }, (_, i) => `${'k'.repeat(30_000)}${1000 + i}=drop&`),
    announced: true,
    status: /400[\s\S]*"malformed_request"/,
  },
  {
    title: '5 million pairs',
    type: urlencoded,
    body: () => repeated('a=b&', 20 * megabytes),
    announced: true,
    status: /400/,
  },
  {
    title: 'a form of plus signs',
    type: urlencoded,
    body: () => joined(['a='], repeated('+', most)),
    announced: true,
    status: /400/,
  },
  {
    title: 'a form of escaped brackets',
    type: urlencoded,
    body: () => joined(['a='], repeated('%5B%5D', most)),
    announced: true,
    status: /400/,
  },
  {
    title: 'a body without end where none is read',
    route: '/no/such/path',
    type: json,
    body: () => repeated('A', 200 * megabytes),
    status: /404|none/,
  },
];

async function carryOut({ server, key }: Target, { route, type, headers, body, chunks, announced }: Attack) {
  const pieces = announced
    ? Buffer.concat([...body()].map((piece) => Buffer.from(piece as string, 'latin1')))
    : undefined;
  const start = head(route ?? '/v1.0/removebg', {
    ...(route ? {} : { 'X-Api-Key': key }),
    'Content-Type': type,
    ...headers,
    ...(pieces ? { 'Content-Length': String(pieces.length) } : { 'Transfer-Encoding': 'chunked' }),
  });
  return attack(server.port, joined([start], pieces ? [pieces] : chunked(body(), chunks)));
}

/** Status, code and detail of the answer, without interim ones; `none` if there is none. */
const answerOf = ({ text }: Outcome): string => /^HTTP\/1\.1 ([2-5]\d\d[\s\S]*)/m.exec(text)?.[1] ?? 'none';

/** What must hold during and after each attack. */
async function unharmed(t: ExecutionContext<Target>, work: () => Promise<void>): Promise<void> {
  const { server, client, image, blocks } = t.context;
  blocks();
  let over = false;
  const codes = new Set<string>();
  const bystander = (async () => {
    while (!over) codes.add((await client.cutout(image, { size: 'preview' })).code);
  })();
  try {
    await work();
  } finally {
    over = true;
    await bystander;
  }
  t.is((await fetch(`${server.url}/health/live`)).status, 200, server.stderr().slice(-2000));
  t.is((await client.cutout(image, { size: 'preview' })).code, 'ok');
  codes.delete('ok');
  // The memory may be in use as long as the attack lasts.
  codes.delete('service_unavailable');
  t.deepEqual([...codes], [], 'others are answered meanwhile');
  const longest = Math.max(0, ...blocks());
  const { peak } = processState(server.child.pid ?? 0);
  t.log(`longest stretch ${longest} ms, peak ${peak.toFixed(0)} MB`);
  t.true(longest <= longestBlock, `${longest} ms without a look at other connections`);
  t.true(peak <= (limit * 2 ** 20) / 1e6 + slack, `${peak} MB`);
}

for (const one of attacks)
  test.serial(one.title, async (t) => {
    t.timeout(120_000);
    await unharmed(t, async () => {
      const outcomes = await Promise.all(
        Array.from({ length: one.times ?? 1 }, () => carryOut(t.context, one)),
      );
      for (const outcome of outcomes) t.regex(answerOf(outcome), one.status, outcome.text.slice(0, 500));
    });
  });

/** A PNG whose header is followed by these chunks. */
const pngWith = async (...chunks: readonly Buffer[]) =>
  chunks.reduce(insertPngChunk, await scene({ format: 'png' }));

for (const [title, kind] of [
  ['zTXt', Buffer.from('k\0\0')],
  ['iTXt', Buffer.from('k\0\x01\0\0\0')],
] as const)
  test.serial(`images whose ${title} chunks become 800 MB`, async (t) => {
    t.timeout(120_000);
    const packed = deflateSync(Buffer.alloc(8 * megabytes, 65), { level: 9 });
    const file = await pngWith(
      ...Array.from({ length: 100 }, () => pngChunk(title, Buffer.concat([kind, packed]))),
    );
    const before = processState(t.context.server.child.pid ?? 0).peak;
    await unharmed(t, async () => {
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => t.context.client.cutout(file, { size: 'preview' })),
      );
      t.deepEqual(
        answers.map(({ code }) => code),
        ['ok', 'ok', 'ok', 'ok'],
      );
    });
    t.true(processState(t.context.server.child.pid ?? 0).peak < before + slack);
  });

/** That many equal bytes, inserted after the first `at` bytes of a file. */
const stuffed = (file: Buffer, at: number, piece: Buffer) =>
  Buffer.concat([
    file.subarray(0, at),
    Buffer.alloc(most22 - (most22 % piece.length), piece),
    file.subarray(at),
  ]);
const most22 = 22 * 2 ** 20 - 100_000;

for (const [title, format, at, piece] of [
  ...['tEXt', 'zTXt', 'iTXt', 'sPLT', 'hIST', 'iCCP', 'gAMA', 'eXIf', 'IDAT'].map(
    (type) => [`PNG: empty ${type}`, 'png', 33, pngChunk(type, Buffer.alloc(0))] as const,
  ),
  ['JPEG: empty APP1', 'jpeg', 2, Buffer.from('ffe10002', 'hex')],
  ['JPEG: empty comments', 'jpeg', 2, Buffer.from('fffe0002', 'hex')],
  ['WebP: empty chunks', 'webp', 30, Buffer.from('abcd\0\0\0\0')],
] as const)
  test.serial(`images of millions of parts: ${title}`, async (t) => {
    t.timeout(120_000);
    const file = stuffed(await scene({ format }), at, piece);
    if (format === 'webp') file.writeUInt32LE(file.length - 8, 4);
    const { peak } = processState(t.context.server.child.pid ?? 0);
    await unharmed(t, async () => {
      const answers = await Promise.all(
        Array.from({ length: 4 }, () => t.context.client.cutout(file, { size: 'preview' })),
      );
      for (const { code } of answers) t.regex(code, /^(?:failed_to_read_image|service_unavailable)$/);
    });
    t.true(processState(t.context.server.child.pid ?? 0).peak < peak + slack);
  });

test.serial('an image of 99 000 empty comments, which is below the bound', async (t) => {
  t.timeout(120_000);
  const file = await pngWith(Buffer.alloc(99_000 * 12, pngChunk('tEXt', Buffer.alloc(0))));
  await unharmed(t, async () => {
    t.is((await t.context.client.cutout(file, { size: 'preview' })).code, 'ok');
  });
});

test.serial('an image with a profile of 8 million curve entries', async (t) => {
  t.timeout(120_000);
  const profile = rgbProfile(PRIMARIES.adobe, { table: [0, 1] });
  // Makes the last of its three curves the longest: the number of entries, and as many bytes after it.
  const entries = 7_900_000;
  const huge = Buffer.concat([profile, Buffer.alloc(2 * entries)]);
  huge.writeUInt32BE(huge.length, 0);
  for (let i = 0; i < 3; i++) {
    const tag = 132 + 12 * (4 + i);
    huge.writeUInt32BE(entries, huge.readUInt32BE(tag + 4) + 8);
    huge.writeUInt32BE(huge.length - huge.readUInt32BE(tag + 4), tag + 8);
  }
  const name = Buffer.from('k\0\0');
  const file = await pngWith(pngChunk('iCCP', Buffer.concat([name, deflateSync(huge)])));
  await unharmed(t, async () => {
    const answer = await t.context.client.cutout(file, { size: 'preview', bg_color: 'red' });
    t.is(answer.code, 'ok');
  });
});

test.serial('2000 bodies that are never completed, with and without a key', async (t) => {
  t.timeout(120_000);
  const { server, key } = t.context;
  const never = async () => {
    const start = (i: number) =>
      i % 2 === 0
        ? `${head('/console/api/link', { 'Content-Type': json, 'Content-Length': '4000' })}{"token":"`
        : `${head('/v1.0/removebg', { 'X-Api-Key': key, 'Content-Type': form, 'Content-Length': '22000000' })}${part('name="image_file"')}abc`;
    const sockets: Socket[] = [];
    const dial = async (i: number) => {
      const socket = connect(server.port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      await new Promise<void>((resolve) => {
        socket.once('connect', resolve);
        socket.once('close', () => resolve());
      });
      socket.write(start(i));
    };
    // A hundred at a time, because the kernel's queue of connections to be accepted is short.
    for (let i = 0; i < 2000; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => dial(i + j)));
    for (let i = 0; i < 5; i++) t.is((await fetch(`${server.url}/health/live`)).status, 200);
    for (const socket of sockets) socket.destroy();
  };
  await unharmed(t, never);
});

test.serial('every legal body is accepted when there is no other load, also without a length', async (t) => {
  t.timeout(120_000);
  const { server, key } = t.context;
  const letters = (bytes: number) => Buffer.alloc(bytes, 65).toString();
  const sent = async (type: string, body: string, length: boolean) => {
    const start = head('/v1.0/removebg', {
      'X-Api-Key': key,
      'Content-Type': type,
      Connection: 'close',
      ...(length ? { 'Content-Length': String(body.length) } : { 'Transfer-Encoding': 'chunked' }),
    });
    const once = async () =>
      answerOf(await attack(server.port, joined([start], length ? [body] : chunked([body]))));
    // The memory of the connections before may be released a moment after their end.
    let answer = await once();
    for (let tries = 0; tries < 20 && answer.startsWith('503'); tries++) {
      await setTimeout(100);
      answer = await once();
    }
    return answer;
  };
  for (const length of [true, false]) {
    t.regex(await sent(json, '{}', length), /^400[\s\S]*missing_source/);
    t.regex(
      await sent(json, `{"image_file_b64":"${letters(29e6)}","tag":"\\u20ac"}`, length),
      /^400[\s\S]*invalid_file/,
    );
    t.regex(
      await sent(urlencoded, `image_file_b64=${letters(29e6)}&a=${letters(47 * 2 ** 20 - 29e6)}`, length),
      /^400[\s\S]*invalid_file/,
    );
  }
});
