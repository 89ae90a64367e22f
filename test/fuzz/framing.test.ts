import { connect, type Socket } from 'node:net';
import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { random } from '../fixtures/random.ts';
import { eventually, startService } from '../fixtures/service.ts';

/**
 * Requests that are malformed below the level of an HTTP library: request lines, headers, lengths, chunks, several
 * requests on one connection, ends in the middle. Malformed bodies are tested by test/http/fuzz.test.ts.
 */
const seed = 20_261_122;
const count = 6000;

interface Dice {
  below(limit: number): number;
  chance(probability: number): boolean;
  of<T>(items: readonly [T, ...T[]]): T;
  bytes(length: number): Buffer;
}

/** Each request has its own, so that its number reproduces it. */
function diceOf(index: number): Dice {
  const next = random(seed + index);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (probability) => next() < probability,
    of: (items) => items[below(items.length)] ?? items[0],
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

type Line = readonly [name: string, value: string];

interface Draft {
  method: string;
  target: string;
  version: string;
  lines: Line[];
  body: Buffer;
  ending: string;
}

const formType = 'multipart/form-data; boundary=b';

const formOf = (image: Buffer) =>
  Buffer.concat([
    Buffer.from('--b\r\nContent-Disposition: form-data; name="image_file"; filename="a.png"\r\n\r\n'),
    image,
    Buffer.from('\r\n--b\r\nContent-Disposition: form-data; name="size"\r\n\r\nauto\r\n--b--\r\n'),
  ]);

/** A request that the service would answer with 200. */
function whole(dice: Dice, key: string, image: Buffer): Draft {
  const account = dice.chance(0.2);
  const bodies: readonly [Line, ...Line[]] = [
    [formType, ''],
    ['application/json', JSON.stringify({ image_file_b64: image.toString('base64') })],
    [
      'application/x-www-form-urlencoded',
      `size=auto&image_file_b64=${encodeURIComponent(image.toString('base64'))}`,
    ],
  ];
  const [type, text] = dice.of(bodies);
  const body = account ? Buffer.alloc(0) : type === formType ? formOf(image) : Buffer.from(text);
  return {
    method: account ? 'GET' : 'POST',
    target: account ? '/v1.0/account' : dice.of(['/v1.0/removebg', '/v1.0/cutout', '/v1.0/improve']),
    version: 'HTTP/1.1',
    lines: [
      ['Host', 'localhost'],
      ['X-Api-Key', key],
      ...(account ? [] : ([['Content-Type', type]] as const)),
      ...(account ? [] : ([['Content-Length', String(body.length)]] as const)),
    ],
    body,
    ending: '\r\n',
  };
}

const chunked = (body: Buffer, size: string): Buffer =>
  Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);

const set = (draft: Draft, name: string, value: string | undefined): void => {
  draft.lines = draft.lines.filter(([known]) => known !== name);
  if (value !== undefined) draft.lines.push([name, value]);
};

const lengths = [
  '-1',
  '0',
  '1',
  '1e3',
  '0x10',
  '99999999999999999999',
  '5, 6',
  '',
  ' ',
  '22000000000',
  '10',
] as const;
const methods = [
  'PUT',
  'DELETE',
  'PATCH',
  'TRACE',
  'CONNECT',
  'post',
  'BREW',
  '',
  'G ET',
  'PRI',
  'OPTIONS',
] as const;
const targets = [
  '*',
  '',
  '/',
  '//',
  '/../../etc/passwd',
  '/v1.0/cutout?size=huge&X-Api-Key=x',
  'http://example.com/v1.0/cutout',
  '/v1.0/cutout/',
  '/V1.0/CUTOUT',
  '/%00',
  '/%',
  '/%ff%fe',
  `/${'a'.repeat(9000)}`,
  '/v1.0/cutout#x',
  'example.com:443',
  '/\u00e4',
] as const;
const headers: readonly [Line, ...Line[]] = [
  ['Expect', '100-continue'],
  ['Expect', '200-ok'],
  ['Upgrade', 'websocket'],
  ['Upgrade', 'h2c'],
  ['Connection', 'Upgrade, HTTP2-Settings'],
  ['Connection', 'close'],
  ['Content-Encoding', 'gzip'],
  ['Content-Encoding', 'deflate, br'],
  ['Transfer-Encoding', 'chunked'],
  ['Transfer-Encoding', 'gzip'],
  ['Transfer-Encoding', 'chunked, identity'],
  ['Content-Type', 'multipart/form-data; boundary='],
  ['Content-Type', `multipart/form-data; boundary=${'b'.repeat(3000)}`],
  ['Content-Type', 'multipart/form-data; boundary="b'],
  ['Content-Type', 'application/json; charset=utf-16'],
  ['Content-Type', '\u00ff'],
  ['Accept', 'x'.repeat(10_000)],
  ['Accept', 'application/json;q=1;q=0,,;'],
  ['Idempotency-Key', '\u00e9'.repeat(500)],
  ['X-Api-Key', 'second'],
  ['Authorization', 'Bearer '],
  ['Cookie', 'x'.repeat(40_000)],
  ['Access-Control-Request-Headers', ',,a b,\u00e4,x-y'],
  ['Host', ''],
  ['Host', 'a b'],
  ['Bad Name', 'x'],
  ['', 'x'],
  ['Nul', 'a\u0000b'],
  ['Fold', 'a\r\n b'],
  ['Bare', 'a\rb'],
];

/** Changes of the draft; the result may be anything from still valid to hopeless. */
const damages: readonly [(draft: Draft, dice: Dice) => void, ...((draft: Draft, dice: Dice) => void)[]] = [
  (draft, dice) => {
    draft.method = dice.of(methods);
  },
  (draft, dice) => {
    draft.target = dice.of(targets);
  },
  (draft, dice) => {
    draft.version = dice.of(['HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', '', 'HTP/1.1']);
  },
  (draft, dice) => {
    draft.ending = dice.of(['\n', '\r', '\n\r', '\r\n\t']);
  },
  (draft, dice) => set(draft, 'Content-Length', dice.of(lengths)),
  (draft) => set(draft, 'Content-Length', undefined),
  (draft, dice) => draft.lines.push(['Content-Length', dice.of(lengths)]),
  (draft) => set(draft, 'Host', undefined),
  (draft, dice) => {
    for (let i = 0; i <= dice.below(3); i += 1) draft.lines.push(dice.of(headers));
  },
  (draft, dice) => {
    for (let i = 0; i < 3000; i += 1) draft.lines.push([`X-${i}`, dice.of(['', 'y'])]);
  },
  (draft, dice) => {
    set(draft, 'Content-Length', undefined);
    draft.lines.push(['Transfer-Encoding', 'chunked']);
    const right = draft.body.length.toString(16);
    const sizes = [
      right,
      right,
      `${right};a=b`,
      '-1',
      'fffffffffffffffff',
      'x',
      '',
      '0',
      `0${right}`,
      ` ${right}`,
    ] as const;
    draft.body = chunked(draft.body, dice.of(sizes));
  },
  (draft) => {
    draft.body = Buffer.alloc(0);
  },
  (draft, dice) => {
    draft.body = Buffer.concat([draft.body, dice.bytes(dice.below(60))]);
  },
];

const bytesOf = ({ method, target, version, lines, body, ending }: Draft): Buffer =>
  Buffer.concat([
    Buffer.from(
      `${method} ${target} ${version}${ending}${lines.map(([name, value]) => `${name}: ${value}${ending}`).join('')}${ending}`,
      'latin1',
    ),
    body,
  ]);

/** Changes of the bytes, at any position. */
function damaged(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(dice.chance(0.7) ? Math.min(250, bytes.length) : bytes.length);
  const to = Math.min(bytes.length, at + dice.below(40));
  const parts = [
    [bytes.subarray(0, at)],
    [bytes.subarray(0, at), bytes.subarray(to)],
    [bytes.subarray(0, to), bytes.subarray(at)],
    [bytes.subarray(0, at), dice.bytes(1 + dice.below(8)), bytes.subarray(at)],
    [bytes.subarray(0, at), dice.bytes(1), bytes.subarray(at + 1)],
    [dice.bytes(dice.below(400))],
  ] as const;
  return Buffer.concat([...dice.of(parts)]);
}

function requestOf(index: number, key: string, image: Buffer): Buffer {
  const dice = diceOf(index);
  const requests = Array.from({ length: dice.chance(0.15) ? 2 + dice.below(3) : 1 }, () => {
    const draft = whole(dice, key, image);
    for (let i = dice.below(3); i > 0; i -= 1) dice.of(damages)(draft, dice);
    const bytes = bytesOf(draft);
    return dice.chance(0.35) ? damaged(bytes, dice) : bytes;
  });
  return Buffer.concat(requests);
}

/** Sends bytes in two pieces, ends its side once nothing more arrives, and returns everything received until the end. */
function exchange(port: number, bytes: Buffer, split: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    let quiet: NodeJS.Timeout | undefined;
    const socket: Socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.write(bytes.subarray(0, split));
      setImmediate(() => {
        socket.write(bytes.subarray(split));
        // From here on: a slow start must not end the connection before anything is sent.
        quiet = setTimeout(() => socket.end(), 150);
      });
    });
    const patience = setTimeout(() => reject(new Error('no end within 20 s')), 20_000);
    socket.on('data', (chunk) => {
      received.push(chunk);
      quiet?.refresh();
    });
    // A reset is an end as well: what arrived before it counts.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(quiet);
      clearTimeout(patience);
      resolve(Buffer.concat(received));
    });
  });
}

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
}

/** The answers in order. Throws if anything is left that is not a complete answer. */
function answersIn(bytes: Buffer): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    const head = bytes.toString('latin1', at, end < 0 ? bytes.length : end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) [^\r]+\r\n/.exec(`${head}\r\n`)?.[1]);
    if (end < 0 || Number.isNaN(status)) throw new Error('not an answer');
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    const none = status === 204 || status < 200;
    if (length === undefined && !none) throw new Error('no Content-Length');
    const body = bytes.subarray(end + 4, end + 4 + (none ? 0 : Number(length)));
    if (!none && body.length !== Number(length)) throw new Error('cut off');
    answers.push({ status, head, body });
    at = end + 4 + body.length;
  }
  return answers;
}

/** Faults of an answer. */
function faultOf({ status, head, body }: Answer): string | undefined {
  if (status >= 500) return 'a fault of the server';
  if (status < 200) return [100, 102].includes(status) ? undefined : 'no such answer';
  if (!/\r\naccess-control-allow-origin: \*/i.test(head)) return 'no CORS';
  if (status < 400) return [200, 204].includes(status) ? undefined : 'no such answer';
  if (!/\r\ncontent-type: application\/json; charset=utf-8/i.test(head)) return 'not JSON';
  const { errors, ...more } = JSON.parse(body.toString()) as { errors: Record<string, unknown>[] };
  const [error, ...others] = errors;
  const fine =
    error &&
    others.length === 0 &&
    Object.keys(more).length === 0 &&
    Object.keys(error).join() === 'title,code,detail' &&
    Object.values(error).every((value) => typeof value === 'string' && value !== '');
  return fine ? undefined : 'not the envelope';
}

/**
 * Input that may go without an answer: empty lines, which are skipped before a request; the HTTP/2 preface;
 * and versions before HTTP/1.1, where ending one's side early means leaving.
 */
const mayBeSilent = (bytes: Buffer): boolean => {
  const text = bytes.toString('latin1');
  return /^[\r\n]*($|PRI )/.test(text) || / HTTP\/(0\.9|1\.0)/.test(text);
};

test(`${count} requests that are malformed below HTTP are each answered, completely and in the envelope`, async (t) => {
  t.timeout(300_000);
  const service = await startService(t, { credits: 1_000_000, rate: 0, improvePerDay: 0 });
  const image = await scene({ width: 16, height: 12, format: 'png' });
  const counts = new Map<string, number>();
  const faults: string[] = [];

  const one = async (index: number): Promise<void> => {
    const bytes = requestOf(index, service.key, image);
    const split = diceOf(-index).below(bytes.length + 1);
    let received: Buffer = Buffer.alloc(0);
    try {
      received = await exchange(service.address.port, bytes, split);
      const answers = answersIn(received);
      for (const answer of answers) {
        const fault = faultOf(answer);
        if (fault) throw new Error(fault);
        counts.set(String(answer.status), (counts.get(String(answer.status)) ?? 0) + 1);
      }
      if (answers.some(({ status }) => status >= 200)) return;
      if (!mayBeSilent(bytes)) throw new Error('no answer');
      counts.set('none', (counts.get('none') ?? 0) + 1);
    } catch (error) {
      const show = (data: Buffer) => JSON.stringify(data.toString('latin1').slice(0, 1500));
      faults.push(`number ${index}: ${error}\nsent ${show(bytes)}\nreceived ${show(received)}`);
    }
  };

  let next = 0;
  const lane = async () => {
    while (next < count) {
      next += 1;
      await one(next);
    }
  };
  await Promise.all(Array.from({ length: 48 }, lane));

  t.deepEqual(faults.slice(0, 5), [], `${faults.length} faults, seed ${seed}`);
  t.log(
    [...counts]
      .sort()
      .map(([status, n]) => `${n} times ${status}`)
      .join(', '),
  );
  t.true((counts.get('200') ?? 0) > count / 20, 'some are whole');
  // The service still works, and nothing stays open.
  t.is((await fetch(`${service.url}/v1.0/account`, { headers: { 'X-Api-Key': service.key } })).status, 200);
  await eventually(async () => (await service.stores.ledger.openReservations()) === 0);
  t.deepEqual(await service.stores.ledger.verify(), []);
  t.deepEqual(
    service.lines().filter(({ level }) => Number(level) >= 50),
    [],
  );
});
