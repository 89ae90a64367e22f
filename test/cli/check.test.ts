import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { ask } from '../../src/cli/check/answer.ts';
import { type CheckOptions, check } from '../../src/cli/check/check.ts';
import { loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';
import { configureImages } from '../../src/server/images.ts';
import { cli, modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';

const key = 'cutout_test_key_0123456789';

/** A server whose answers do not depend on earlier requests. */
const serve = (t: ExecutionContext) =>
  startServing(t, {
    CUTOUT_DATA_DIR: temporaryFolder(t),
    CUTOUT_MODELS_DIR: modelsFolder(temporaryFolder(t)),
    CUTOUT_API_KEY: key,
    CUTOUT_KEEP_SECONDS: '0',
    CUTOUT_FREE_PREVIEWS_MONTH: '0',
    CUTOUT_SUBJECT_TYPES: 'off',
  });

async function listen(t: ExecutionContext, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A service that answers as the test says. */
async function peer(t: ExecutionContext, answer: (req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer(answer);
  t.teardown(() => server.closeAllConnections());
  return listen(t, server);
}

interface Exchange {
  /** The body, one character a byte. */
  readonly sent: string;
  readonly url: string;
}

interface Changes {
  /** The body that is passed on; its length must stay. */
  readonly request?: (sent: string) => string;
  readonly response?: (exchange: Exchange, res: ServerResponse, status: number, body: Buffer) => boolean;
  readonly without?: readonly string[];
}

/** A service that does what another one does, with changes. */
async function altered(t: ExecutionContext, target: string, { request, response, without = [] }: Changes) {
  const exchanges: Exchange[] = [];
  const url = await peer(t, (req, res) => {
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => {
      void (async () => {
        const sent = Buffer.concat(parts).toString('latin1');
        const exchange = { sent, url: req.url ?? '' };
        exchanges.push(exchange);
        const { host: _, connection: __, 'content-length': ___, ...headers } = req.headers;
        const answer = await fetch(`${target}${req.url}`, {
          method: req.method ?? 'GET',
          headers: headers as Record<string, string>,
          ...(req.method === 'POST' && { body: Buffer.from(request?.(sent) ?? sent, 'latin1') }),
        });
        const body = Buffer.from(await answer.arrayBuffer());
        for (const [name, value] of answer.headers)
          if (!without.includes(name) && !['content-length', 'connection', 'keep-alive'].includes(name))
            res.setHeader(name, value);
        if (response?.(exchange, res, answer.status, body)) return;
        res.writeHead(answer.status).end(body);
      })();
    });
  });
  return { url, exchanges };
}

interface Ran {
  readonly same: boolean;
  readonly out: string;
  readonly err: string;
}

/** Compares as `cutout check` does, with a running server. */
async function run(
  server: string,
  against: string,
  options: Partial<CheckOptions> = {},
  photo?: string,
): Promise<Ran> {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const texts = Promise.all([text(out), text(err)]);
  const config = loadConfig({ CUTOUT_API_KEY: key, CUTOUT_AGAINST_KEY: key });
  const standard = { full: false, field: {}, timeout: 60, json: true, dryRun: false };
  const streams = { out, err, signal: new AbortController().signal };
  try {
    const same = await check(photo, { ...standard, server, against, ...options }, config, streams);
    out.end();
    err.end();
    const [printed, said] = await texts;
    return { same, out: printed, err: said };
  } finally {
    out.end();
    err.end();
  }
}

interface Row {
  readonly request: string;
  readonly there: { readonly status: number; readonly facts: Readonly<Record<string, string>> };
  readonly differences: readonly { readonly matters: boolean; readonly what: string }[];
}

const rowsOf = (out: string): Row[] => JSON.parse(out).requests;

/** Differences of the contract as `request: what`. */
const noticed = ({ out }: Ran): string[] =>
  rowsOf(out).flatMap(({ request, differences }) =>
    differences.filter(({ matters }) => matters).map(({ what }) => `${request}: ${what}`),
  );

const balance = async (url: string): Promise<number> => {
  const answer = await fetch(`${url}/v1.0/account`, { headers: { 'X-Api-Key': key } });
  const account = (await answer.json()) as { data: { attributes: { credits: { total: number } } } };
  return account.data.attributes.credits.total;
};

test.serial('two services that answer alike have no differences, and are charged as announced', async (t) => {
  const { url } = await serve(t);
  const before = await balance(url);
  const ran = await run(url, url, { json: false });
  t.true(ran.same, ran.out);
  t.regex(ran.out, /^plain: 200, [\d.]+ \/ [\d.]+ s, mean difference 0\.0 of 255$/m);
  t.regex(ran.out, /^account: 200, /m);
  t.regex(ran.out, /^no image: 400, [\d.]+ \/ [\d.]+ s$/m);
  t.regex(ran.out, /^wrong key: 403, [\d.]+ \/ [\d.]+ s$/m);
  t.notRegex(ran.out, /^ {2}/m);
  t.regex(ran.out, /\nDifferences that a client can notice \(here \/ there\): 0\n$/);
  const [, previews] =
    /At most (\d+) previews and 0 results of full size may be charged by each service/.exec(ran.err) ?? [];
  t.is(before - (await balance(url)), 2 * Number(previews) * 0.25, 'both roles are this server');
});

test.serial('every kind of difference is found, and no other', async (t) => {
  const { url } = await serve(t);
  const other = await altered(t, url, {
    // Fields that are no longer known are ignored: the service lacks roi, position and the format webp.
    request: (sent) =>
      sent
        .replaceAll('name="roi"', 'name="rox"')
        .replace('name="scale"', 'name="scalx"')
        .replace(/webp/, 'jpg '),
    without: ['x-type'],
    response: ({ sent, url: requested }, res, status, body) => {
      const has = (name: string, value: string) =>
        new RegExp(`name="${name}"\\r\\n\\r\\n${value}\\r\\n`).test(sent);
      if (has('size', 'huge')) res.end('a page');
      else if (has('format', 'gif')) res.writeHead(400).end('{"errors":[{"title":"No"}]}');
      else if (has('bg_color', 'nocolour')) res.writeHead(500).end(body);
      else if (has('type', 'product')) res.writeHead(status).end(body.subarray(0, body.length / 2));
      else if (requested.endsWith('account')) res.writeHead(status).end('{"data":{"credits":1}}');
      else return false;
      return true;
    },
  });
  const ran = await run(url, `${other.url}/v1.0/removebg`);
  t.false(ran.same);
  const found = noticed(ran);
  t.true(found.includes('plain: X-Type'));
  t.deepEqual(
    found.filter((each) => !each.endsWith(': X-Type')),
    [
      'account: keys',
      'format=webp: Content-Type',
      'format=webp: format',
      'format=webp: channels',
      'roi=0% 0% 50% 100%: image',
      'scale=50% position=0% 0%: image',
      'type=product: format',
      'type=product: channels',
      'type=product: unreadable',
      'size=huge: status',
      'format=gif: error code',
      'format=gif: keys',
      'roi=somewhere: status',
      'roi=0px 0px 90000px 90000px: status',
      'scale=5%: status',
      'bg_color=nocolour: status',
    ],
  );
  const shown = await run(url, other.url, { json: false });
  t.regex(shown.out, /^ {2}! X-Type: present \/ absent$/m);
  t.regex(
    shown.out,
    /^roi=0% 0% 50% 100%: .*\n(?: {2}.*\n)* {2}! image: this one \/ differs by \d+ of 255$/m,
  );
  t.regex(shown.out, /\nDifferences that a client can notice \(here \/ there\): [1-9]\d*\n$/);
});

test.serial('a photo, full sizes and further fields', async (t) => {
  const { url } = await serve(t);
  const other = await altered(t, url, {});
  const file = path.join(temporaryFolder(t), 'photo.jpg');
  writeFileSync(file, await scene({ width: 900, height: 600 }));
  const ran = await run(url, other.url, { full: true, field: { test: 'true' } }, file);
  t.true(ran.same, ran.out);
  t.regex(ran.err, / previews and 2 results of full size may be charged /);
  const posts = other.exchanges.filter(({ url: requested }) => requested.endsWith('removebg'));
  t.true(posts.every(({ sent }) => /name="test"\r\n\r\ntrue|"test":"true"|^test=true/.test(sent)));
  const full = rowsOf(ran.out).find(({ request }) => request === 'size=full');
  t.like(full?.there.facts, { 'X-Width': '900', 'X-Height': '600', format: 'png' });
});

test.serial('a request without an answer is a difference; three in a row end the check', async (t) => {
  const { url } = await serve(t);
  const slow = await altered(t, url, { response: ({ sent }) => sent.includes('webp') });
  const one = await run(url, slow.url, { timeout: 3 });
  t.deepEqual(noticed(one), ['format=webp: status']);
  const found = rowsOf(one.out).find(({ request }) => request === 'format=webp');
  t.like(found?.there, { status: 0, facts: { 'error title': 'no complete answer within 3 s' } });
  let posts = 0;
  const gone = await altered(t, url, {
    response: ({ url: requested }, res) => {
      if (!requested.endsWith('removebg')) return false;
      posts += 1;
      if (posts > 1) res.socket?.destroy();
      return posts > 1;
    },
  });
  await t.throwsAsync(run(url, gone.url), {
    instanceOf: UserError,
    message: '3 requests in a row had no answer from one of the services.',
  });
  t.is(posts, 4);
});

test.serial('a service that cannot be compared is one sentence', async (t) => {
  const { url } = await serve(t);
  const closed = await peer(t, () => {});
  const words = await listen(
    t,
    createTcpServer((socket) => void socket.end('SSH-2.0-server\r\n').on('error', () => {})),
  );
  const silent = await listen(
    t,
    createTcpServer((socket) => void socket.on('error', () => {})),
  );
  const page = await peer(t, (_, res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'));
  const moved = await peer(t, (_, res) =>
    res.writeHead(301, { Location: 'https://x.example/\x9b31m' }).end(),
  );
  const missing = await peer(t, (_, res) => res.writeHead(404).end());
  const poor = await peer(t, (req, res) =>
    res.writeHead(req.method === 'POST' ? 402 : 200).end('{"errors":[{"title":"Insufficient credits"}]}'),
  );
  const refusing = await altered(t, url, { request: (sent) => sent });
  const cases: [string, RegExp, Partial<CheckOptions>?][] = [
    ['ftp://x', /^--against must be an http or https address, not "ftp:\/\/x"\.$/],
    ['http://a:b@127.0.0.1', /^--against must have no user name and password\.$/],
    [
      'http://name.invalid',
      /v1\.0\/removebg answers the plain request with status 0 and nothing \((ENOTFOUND|EAI_AGAIN)\)\./,
    ],
    [words, /with status 0 and nothing \(.*HTTP/],
    [words.replace('http:', 'https:'), /with status 0 and nothing \(ERR_SSL_/],
    [silent, /with status 0 and nothing \(no complete answer within 1 s\)\./, { timeout: 1 }],
    [closed, /with status 0 and nothing \(no complete answer within 1 s\)\./, { timeout: 1 }],
    [page, /with status 200 and text\/html \(no error\)\. Check the address/],
    [moved, /with status 301 and nothing \(it redirects to https:\/\/x\.example\/ 31m\)\./],
    [
      missing,
      /with status 404 and nothing \(no error\)\. Check the address, which may be the whole one of its removebg/,
    ],
    [poor, /with status 402 and nothing \(Insufficient credits\)\./],
    [`${refusing.url}/elsewhere`, /with status 404 and /],
  ];
  for (const [against, said, options] of cases)
    await t.throwsAsync(run(url, against, options), { instanceOf: UserError, message: said }, against);
});

test('no more of an answer is read than the limit', async (t) => {
  let sent = 0;
  const url = await peer(t, (req, res) => {
    req.resume();
    const part = Buffer.alloc(64 * 1024);
    const write = () => {
      while (!res.destroyed && res.write(part)) sent += part.length;
    };
    res.writeHead(200).on('drain', write);
    write();
  });
  const image = { ...configureImages({ inputFormats: [] }), maxBytes: 1024 ** 2 };
  const signal = new AbortController().signal;
  const answer = await ask(new URL(url), {}, { timeoutMs: 60_000, image, signal });
  t.like(answer, { status: 0, facts: { 'error title': 'more than 1 MB' } });
  t.true(sent < 64 * 1024 ** 2);
});

test.serial('the command: keys, exit codes, and where it sends them', async (t) => {
  const other = await serve(t);
  const env = { CUTOUT_DATA_DIR: temporaryFolder(t), CUTOUT_API_KEY: key };
  const command = ['check', '--server', other.url, '--against'];
  const without = await cli(t, [...command, other.url], env);
  t.is(without.code, 2);
  t.regex(without.stderr, /\ncutout: Set CUTOUT_AGAINST_KEY to the key for --against/);
  const ran = await cli(t, [...command, other.url, '--json'], { ...env, CUTOUT_AGAINST_KEY: key });
  t.is(ran.code, 0, ran.stderr);
  t.deepEqual(
    rowsOf(ran.stdout.toString()).flatMap(({ differences }) => differences),
    [],
  );
  const refused = await cli(t, [...command, other.url], {
    ...env,
    CUTOUT_AGAINST_KEY: 'another_key_0123456789',
  });
  t.is(refused.code, 2);
  t.regex(refused.stderr, /\(API Key invalid\)\. Check the address.* key in CUTOUT_AGAINST_KEY\.\n$/);
  t.false(refused.stderr.includes('another_key'));
  const changed = await altered(t, other.url, { without: ['x-width'] });
  const different = await cli(t, [...command, changed.url], { ...env, CUTOUT_AGAINST_KEY: key });
  t.is(different.code, 1);
  t.regex(different.stdout.toString(), /^ {2}! X-Width: 612 \/ absent$/m);
});

test.serial('--dry-run lists the requests and sends none', async (t) => {
  let calls = 0;
  const url = await peer(t, (_, res) => {
    calls += 1;
    res.end();
  });
  const { same, out, err } = await run(url, url, { dryRun: true, full: true });
  t.true(same);
  t.is(calls, 0);
  t.regex(out, /^crop=true crop_margin=30px: preview$/m);
  t.regex(out, /^size=full: full$/m);
  t.regex(out, /^two backgrounds: refused$/m);
  t.regex(
    err,
    /^At most \d+ previews and 2 results of full size may be charged by each service; \d+ requests/,
  );
});

test.serial('a file that cannot be read is refused before anything is sent', async (t) => {
  const folder = temporaryFolder(t);
  for (const [file, said] of [
    [path.join(folder, 'none.jpg'), /^The photo .*none\.jpg cannot be read: There is no such file\.$/],
    [folder, /: It is not a regular file\.$/],
  ] as const)
    await t.throwsAsync(run('http://127.0.0.1:1', 'http://127.0.0.1:1', {}, file), {
      instanceOf: UserError,
      message: said,
    });
});
