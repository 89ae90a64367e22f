import { mkdirSync, readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { readBody } from '../../src/cli/service.ts';
import { cli, modelsFolder, startCli, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';

const key = 'cutout_test_key_0123456789';
const cutout = await scene({ format: 'png' });

interface Call {
  readonly idempotencyKey: string;
  readonly body: Buffer;
}

type Answer = (call: Call, number: number, res: ServerResponse, req: IncomingMessage) => void;

/** A server of the API that answers as a test says, and records what it was sent. */
async function fakeServer(t: ExecutionContext, answer: Answer) {
  const calls: Call[] = [];
  let open = 0;
  let mostOpen = 0;
  const server = createServer((req, res) => {
    if (req.url === '/v1.0/account' && req.headers['x-api-key'] === key) return void res.end('{}');
    const parts: Buffer[] = [];
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    res.on('close', () => {
      open -= 1;
    });
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('error', () => {});
    req.on('end', () => {
      const call = { idempotencyKey: String(req.headers['idempotency-key']), body: Buffer.concat(parts) };
      calls.push(call);
      answer(call, calls.length, res, req);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, calls, mostOpen: () => mostOpen };
}

const error = (res: ServerResponse, status: number, title: string, detail: string, after?: number) => {
  res.writeHead(status, {
    'Content-Type': 'application/json',
    ...(after && { 'Retry-After': String(after) }),
  });
  res.end(JSON.stringify({ errors: [{ title, detail, code: 'x' }] }));
};

const png = (res: ServerResponse, bytes = cutout) => {
  res.writeHead(200, { 'Content-Type': 'image/png', 'X-Credits-Charged': '0.25' });
  res.end(bytes);
};

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Ends the file of this name. */
const mark = (name: string) => Buffer.from(`#${name}#`);

async function setUp(t: ExecutionContext, names: readonly string[]) {
  const folder = temporaryFolder(t);
  const photo = await scene();
  // Each has a content of its own.
  for (const name of names) writeFileSync(path.join(folder, name), Buffer.concat([photo, mark(name)]));
  const env = { CUTOUT_DATA_DIR: temporaryFolder(t), CUTOUT_API_KEY: key };
  const run = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    cli(t, ['run', ...args], { ...env, ...more }, undefined, folder);
  const results = () => readdirSync(path.join(folder, 'out')).sort();
  return { folder, photo, run, env, results };
}

test.serial('a running server cuts out; the credits that it charged are shown', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg', 'b.jpg']);
  const serving = await startServing(t, {
    CUTOUT_DATA_DIR: temporaryFolder(t),
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_API_KEY: key,
  });
  writeFileSync(path.join(folder, 'white.png'), await scene({ subject: 'none', format: 'png' }));
  const { code, stderr } = await run(['.', '--server', serving.url, '--out', 'out', '--size', 'full']);
  t.is(code, 1);
  t.regex(stderr, /^2 images cut out in .* images a second\)\.\nCharged: 2 credits\.\n1 image failed:\n/);
  t.regex(stderr, /white\.png +Could not identify foreground in image: No subject was found\./);
  const result = await sharp(readFileSync(path.join(folder, 'out', 'a.png'))).metadata();
  t.like(result, { format: 'png', channels: 4 });
});

test.serial('rate limits and failures of the server are waited for, with the same key', async (t) => {
  const { run, photo, results } = await setUp(t, ['a.jpg', 'b.jpg', 'c.jpg']);
  const { url, calls } = await fakeServer(t, (_, number, res, req) => {
    if (number === 1) error(res, 429, 'Rate limit exceeded', '', 2);
    else if (number === 2) error(res, 503, 'Service unavailable', 'Full.', 1);
    else if (number === 3) req.socket.destroy();
    else png(res);
  });
  const started = performance.now();
  const { code, stderr } = await run(['.', '--server', `${url}/`, '--out', 'out', '--jobs', '1']);
  t.is(code, 0, stderr);
  t.true(performance.now() - started > 3000, 'Retry-After is obeyed');
  t.deepEqual(results(), ['a.png', 'b.png', 'c.png']);
  t.regex(stderr, /^3 images cut out .*\nCharged: 0\.75 credits\.\n$/);
  t.is(calls.length, 6);
  t.is(new Set(calls.slice(0, 4).map(({ idempotencyKey }) => idempotencyKey)).size, 1);
  t.is(new Set(calls.map(({ idempotencyKey }) => idempotencyKey)).size, 3);
  for (const { body } of calls.slice(3)) t.true(body.includes(photo), 'the file arrives as it is');
});

test.serial('--jobs images are sent at a time', async (t) => {
  const names = Array.from({ length: 9 }, (_, i) => `${i}.jpg`);
  const { run } = await setUp(t, names);
  const { url, mostOpen } = await fakeServer(t, (_, __, res) => void setTimeout(() => png(res), 200));
  t.is((await run(['.', '--server', url, '--out', 'out', '--jobs', '3'])).code, 0);
  t.is(mostOpen(), 3);
});

for (const [status, title] of [
  [402, 'Insufficient credits'],
  [403, 'Invalid API Key'],
] as const)
  test.serial(`${status} ends the run, because every other image would get it too`, async (t) => {
    const { run, results } = await setUp(t, ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg']);
    let paid = 1;
    const { url, calls } = await fakeServer(t, (_, __, res) => {
      paid -= 1;
      if (paid >= 0) png(res);
      else error(res, status, title, 'Buy more.');
    });
    const args = ['.', '--server', url, '--out', 'out', '--jobs', '1'];
    const { code, stderr } = await run(args);
    t.is(code, 1);
    t.is(calls.length, 2);
    t.regex(
      stderr,
      /^1 image cut out .*\nCharged: 0\.25 credits\.\nStopped: .*: Buy more\.\n3 images not started/,
    );
    paid = 9;
    t.is((await run(args)).code, 0);
    t.deepEqual(results(), ['a.png', 'b.png', 'c.png', 'd.png']);
    t.is(calls.length, 5, 'what was done is not sent again');
  });

test.serial(
  'other errors belong to their image; a redirect or a page instead of an image ends the run',
  async (t) => {
    const { run } = await setUp(t, ['a.jpg', 'b.jpg']);
    const refusing = await fakeServer(t, (_, number, res) => {
      if (number === 1) error(res, 400, 'File too large', 'File exceeds limit of 22MB');
      else png(res);
    });
    const refused = await run(['.', '--server', refusing.url, '--out', 'one', '--jobs', '1']);
    t.regex(refused.stderr, /^1 image cut out [\s\S]*a\.jpg +File too large: File exceeds limit of 22MB\n$/);
    t.is(refusing.calls.length, 2);

    const moved = await fakeServer(t, (_, __, res) =>
      res.writeHead(301, { Location: 'https://other.example/' }).end(),
    );
    const redirected = await run(['.', '--server', moved.url, '--out', 'two', '--jobs', '1']);
    t.regex(
      redirected.stderr,
      /Stopped: The server redirects to https:\/\/other\.example\/: give that to --server\.\n/,
    );
    t.is(moved.calls.length, 1, 'the key is sent to no other server');

    const page = await fakeServer(t, (_, __, res) =>
      res.writeHead(200, { 'Content-Type': 'text/html' }).end('hello'),
    );
    const web = await run(['.', '--server', page.url, '--out', 'three', '--jobs', '1']);
    t.regex(web.stderr, /Stopped: The server answered with text\/html instead of an image\.\n/);
  },
);

test.serial('a stop ends the run soon and leaves no unfinished result', async (t) => {
  const { folder, env, results, run } = await setUp(t, ['a.jpg', 'b.jpg', 'c.jpg']);
  const { url, calls } = await fakeServer(t, (_, number, res) => {
    if (number === 1 || number > 2) png(res);
  });
  const args = ['.', '--server', url, '--out', 'out', '--jobs', '1'];
  const { child, ended } = startCli(t, ['run', ...args], env, undefined, folder);
  while (calls.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill('SIGINT');
  const { code, stderr } = await ended;
  t.is(code, 1);
  t.regex(
    stderr,
    /^1 image cut out .*\nCharged: 0\.25 credits\.\n2 images not started or not finished; the same command continues there\.\n$/,
  );
  t.deepEqual(results(), ['a.png']);
  t.is((await run(args)).code, 0);
  t.deepEqual(results(), ['a.png', 'b.png', 'c.png']);
});

test.serial('a server that cannot be reached or does not accept the key is an error at once', async (t) => {
  const { run } = await setUp(t, ['a.jpg']);
  const { url, calls } = await fakeServer(t, (_, __, res) => error(res, 403, 'API Key invalid', ''));
  const wrong = await run(['a.jpg', '--server', url], { CUTOUT_API_KEY: 'another_key_0123456789' });
  t.is(wrong.code, 1);
  t.is(wrong.stderr, 'cutout: API Key invalid\n');
  t.is(calls.length, 1);
  // TCP's discard port: fetch refuses it without trying.
  const closed = await run(['a.jpg', '--server', 'http://127.0.0.1:9']);
  t.is(closed.stderr, 'cutout: http://127.0.0.1:9/ could not be reached (bad port).\n');
  const unused = await freePort();
  const refused = await run(['a.jpg', '--server', `http://127.0.0.1:${unused}/api`]);
  t.is(refused.stderr, `cutout: http://127.0.0.1:${unused}/api/ could not be reached (ECONNREFUSED).\n`);
});

test.serial('a server that goes away ends the run after a few images, with what was done', async (t) => {
  const names = Array.from({ length: 8 }, (_, i) => `${i}.jpg`);
  const { run, results } = await setUp(t, names);
  // Three are sent at a time and arrive in any order: the server tells them apart by their contents.
  const { url, calls } = await fakeServer(t, ({ body }, _, res, req) => {
    if (['0.jpg', '1.jpg'].some((name) => body.includes(mark(name)))) png(res);
    else req.socket.destroy();
  });
  const { code, stderr } = await run(['.', '--server', url, '--out', 'out', '--jobs', '3']);
  t.is(code, 1);
  t.regex(stderr, /^2 images cut out [\s\S]*Stopped: The server could not be reached \(\w+\)\.\n/);
  t.deepEqual(results(), ['0.png', '1.png']);
  t.true(calls.length <= 32, `${calls.length} attempts`);
});

test.serial('an image whose result would overwrite an input is not sent', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg']);
  for (const name of ['b.png', 'c.png']) writeFileSync(path.join(folder, name), cutout);
  const { url, calls } = await fakeServer(t, (_, __, res) => png(res));
  const args = ['.', '--server', url, '--out', '.'];
  const { code, stderr } = await run(args);
  t.is(code, 1);
  t.regex(
    stderr,
    /^1 image cut out .*\nCharged: 0\.25 credits\.\n2 images failed:\n.*b\.png .*would overwrite an input/,
  );
  t.is(calls.length, 1);
  t.regex((await run(args)).stderr, /^0 images cut out .*\n1 image skipped/);
  t.regex((await run([...args, '-f', 'jpg'])).stderr, /^0 images/);
  t.is(calls.length, 3, 'PNG files become JPG files beside them');
});

test.serial('results that cannot be written end the run', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg']);
  const { url, calls } = await fakeServer(t, (_, __, res) => {
    renameSync(path.join(folder, 'out'), path.join(folder, 'away'));
    writeFileSync(path.join(folder, 'out'), '');
    png(res);
  });
  const args = ['.', '--server', url, '--jobs', '1', '--out'];
  const { code, stderr } = await run([...args, 'out']);
  t.is(code, 1);
  t.regex(
    stderr,
    /^0 images .*\nCharged: 0\.25 credits\.\nStopped: The output folder \S+ cannot be created: /,
  );
  t.is(calls.length, 1);
  const before = await run([...args, '/proc']);
  t.regex(before.stderr, /^cutout: The output folder \/proc cannot be written: /);
  t.is(calls.length, 1, 'no image is sent');
});

test.serial(
  'results in flight that cannot be written are listed with their key; a repeat sends it',
  async (t) => {
    const { run, folder, results } = await setUp(t, ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg', 'e.jpg']);
    const held: (() => void)[] = [];
    let broken = true;
    const { url, calls } = await fakeServer(t, (_, __, res) => {
      if (!broken) return png(res);
      held.push(() => png(res));
      if (held.length < 3) return;
      renameSync(path.join(folder, 'out'), path.join(folder, 'away'));
      writeFileSync(path.join(folder, 'out'), '');
      for (const answer of held) answer();
    });
    const args = ['.', '--server', url, '--jobs', '3', '--out', 'out', '--report', 'r.csv'];
    const { code, stderr } = await run(args);
    t.is(code, 1);
    t.is(calls.length, 3);
    t.regex(
      stderr,
      /Charged: 0\.75 credits\.\nStopped: .*\n2 images not started or not finished; .*\n3 images failed:\n/,
    );
    const keys = (text: string) => [...text.matchAll(/Charged: 0\.25 credits; Idempotency-Key: (\S+)/g)];
    const sent = calls.map(({ idempotencyKey }) => idempotencyKey).sort();
    t.deepEqual(
      keys(stderr)
        .map(([, key]) => key)
        .sort(),
      sent,
    );
    t.regex(stderr, /the same command sends the same Idempotency-Key/);
    t.is(keys(readFileSync(path.join(folder, 'r.csv'), 'utf8').replaceAll('"', '')).length, 3);

    broken = false;
    renameSync(path.join(folder, 'out'), path.join(folder, 'file'));
    renameSync(path.join(folder, 'away'), path.join(folder, 'out'));
    t.is((await run(args)).code, 0);
    t.deepEqual(results(), ['a.png', 'b.png', 'c.png', 'd.png', 'e.png']);
    const repeated = calls.slice(3).map(({ idempotencyKey }) => idempotencyKey);
    for (const key of sent) t.true(repeated.includes(key));
    t.is(new Set(repeated).size, 5);
    t.is((await run([...args, '--overwrite', '--size', 'full'])).code, 0);
    const others = calls.slice(8).map(({ idempotencyKey }) => idempotencyKey);
    t.false(
      others.some((key) => repeated.includes(key)),
      'other options are other results',
    );
  },
);

test.serial('a repeat of a run whose results were lost is free on a running server', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg', 'b.jpg']);
  const serving = await startServing(t, {
    CUTOUT_DATA_DIR: temporaryFolder(t),
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_API_KEY: key,
  });
  const args = ['.', '--server', serving.url, '--out', 'out', '--size', 'full'];
  t.regex((await run(args)).stderr, /^2 images cut out .*\nCharged: 2 credits\.\n$/);
  renameSync(path.join(folder, 'out'), path.join(folder, '.lost'));
  t.regex((await run(args)).stderr, /^2 images cut out .*\)\.\n$/);
});

test.serial('in place, auto asks for PNG: a JPG would overwrite an input or become one', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg']);
  writeFileSync(path.join(folder, 'b.webp'), await scene({ format: 'webp' }));
  const jpg = await scene();
  const { url, calls } = await fakeServer(t, ({ body }, _, res) => {
    if (/name="format"\s+png/.test(body.toString('latin1'))) return png(res);
    res.writeHead(200, { 'Content-Type': 'image/jpeg', 'X-Credits-Charged': '0.25' }).end(jpg);
  });
  const args = ['.', '--server', url, '--out'];
  const first = await run([...args, '.']);
  t.is(first.code, 0, first.stderr);
  const again = await run([...args, '.']);
  t.is(again.code, 0, again.stderr);
  t.regex(again.stderr, /^0 images cut out .*\n2 images skipped/);
  t.is(calls.length, 2);
  t.deepEqual(readdirSync(folder).sort(), ['a.jpg', 'a.png', 'b.png', 'b.webp']);
  t.is((await run(['a.jpg', '--server', url, '--out', 'out'])).code, 0);
  t.deepEqual(readdirSync(path.join(folder, 'out')), ['a.jpg'], 'elsewhere it stays what the server chooses');
});

test.serial('- is read up to the limit of uploads, and its result is not lost silently', async (t) => {
  const { env } = await setUp(t, []);
  const { url, calls } = await fakeServer(t, (_, __, res) => png(res));
  const args = ['run', '-', '--server', url];
  const endless = startCli(t, args, env, undefined, undefined, ['sh', '-c', 'cat /dev/zero | "$@"', 'sh']);
  const { code, stderr } = await endless.ended;
  t.is(code, 1);
  t.is(stderr, 'File too large: File exceeds limit of 22MB\n');
  t.is(calls.length, 0);
  const full = startCli(t, args, env, await scene(), undefined, ['sh', '-c', 'exec "$@" > /dev/full', 'sh']);
  const lost = await full.ended;
  t.is(lost.code, 1);
  t.regex(
    lost.stderr,
    /^The result cannot be written: the disk is full\. Charged: 0\.25 credits; Idempotency-Key: \S+\nWhere /,
  );
  t.is(calls.length, 1);
});

test.serial('a report that can no longer be written is one sentence after the summary', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg']);
  mkdirSync(path.join(folder, 'reports'));
  const { url } = await fakeServer(t, (_, __, res) => {
    renameSync(path.join(folder, 'reports'), path.join(folder, 'moved'));
    png(res);
  });
  const { code, stderr } = await run(['a.jpg', '--server', url, '--report', 'reports/r.csv']);
  t.is(code, 1);
  t.regex(stderr, /^1 image cut out .*\n.*\ncutout: The report reports\/r\.csv cannot be written: .*\n$/);
});

test.serial('files above the limit of uploads are not read', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg']);
  truncateSync(path.join(folder, 'a.jpg'), 22 * 1024 * 1024 + 1);
  const { url, calls } = await fakeServer(t, (_, __, res) => png(res));
  const { code, stderr } = await run(['a.jpg', '--server', url]);
  t.is(code, 1);
  t.regex(stderr, /a\.jpg +File too large: File exceeds limit of 22MB\n$/);
  t.is(calls.length, 0);
});

test.serial('an answer that is no image is no result', async (t) => {
  const { run, folder } = await setUp(t, ['a.jpg', 'b.jpg']);
  for (const body of ['', '<html>an error</html>']) {
    const { url } = await fakeServer(t, (_, __, res) => png(res, Buffer.from(body)));
    const { code, stderr } = await run(['.', '--server', url, '--out', 'out', '--jobs', '1']);
    t.is(code, 1);
    t.regex(
      stderr,
      /Charged: 0\.25 credits\.\nStopped: The server answered with something that is no image\.\n/,
    );
    t.deepEqual(readdirSync(path.join(folder, 'out')), []);
  }
});

test.serial('texts of a server are shown without control characters and not endlessly', async (t) => {
  const { run } = await setUp(t, ['a.jpg']);
  const { url } = await fakeServer(t, (_, number, res) =>
    error(res, 400, 'Bad\x1b[2J\u202e', 'x'.repeat(number === 1 ? 9000 : 70_000)),
  );
  const long = await run(['a.jpg', '--server', url]);
  t.regex(long.stderr, / {2}Bad \[2J : x{480,500}\n$/);
  t.regex((await run(['a.jpg', '--server', url])).stderr, / {2}The server answered with status 400\.\n$/);
});

test('an answer is read up to its limit', async (t) => {
  const answer = (parts: number) => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        if (sent > parts) controller.close();
        else controller.enqueue(new Uint8Array(1000));
      },
    });
    return { response: new Response(body), sent: () => sent };
  };
  t.is((await readBody(answer(5).response, 5000))?.length, 5000);
  const endless = answer(Number.POSITIVE_INFINITY);
  t.is(await readBody(endless.response, 5000), undefined);
  t.true(endless.sent() < 10);
});

test.serial('what --server needs is said in one sentence', async (t) => {
  const { run } = await setUp(t, ['a.jpg']);
  t.regex(
    (await run(['a.jpg', '--server', 'ftp://x'])).stderr,
    /^cutout: --server must be an http or https address/,
  );
  const pull = await run(['a.jpg', '--server', 'http://127.0.0.1:1', '--pull']);
  t.regex(pull.stderr, /^cutout: --pull has no effect with --server\.\n$/);
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, 'a.jpg'), await scene());
  const withoutKey = await cli(t, ['run', 'a.jpg', '--server', 'http://127.0.0.1:1'], {}, undefined, folder);
  t.regex(withoutKey.stderr, /^cutout: Set CUTOUT_API_KEY /);
});
