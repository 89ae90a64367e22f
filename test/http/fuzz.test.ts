import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { Agent, request } from 'undici';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { cutoutOptions } from '../../src/http/route/cutout/schema.ts';
import { scene } from '../fixtures/images.ts';
import { Published } from '../fixtures/openapi.ts';
import { random } from '../fixtures/random.ts';
import { startService } from '../fixtures/service.ts';

/** `npm run fuzz` sets another seed and a longer time. */
const seed = Number(process.env['CUTOUT_FUZZ_SEED'] ?? 20_261_121);
const seconds = Number(process.env['CUTOUT_FUZZ_SECONDS'] ?? 0);
const count = 20_000;

type Value = string | number | boolean | null | Value[] | { [name: string]: Value };

/** The random numbers of one run, from one seed. */
class Dice {
  readonly #next = random(seed);

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}

const names = [
  ...Object.keys(cutoutOptions),
  'image_file',
  'image_file_b64',
  'image_url',
  'bg_image_url',
  'bg_image_file',
  'image_filename',
  'tag',
  'shadow_type[person]',
  'shadow_opacity[',
  'shadow_type[]',
  '__proto__',
  '__proto__[size]',
  'constructor',
  'toString',
  'size[]',
  'a.b',
  '',
  'ä"\\',
];

const words = [
  ...[
    'auto',
    'preview',
    'FULL',
    '50MP',
    'png',
    'zip',
    'rgba',
    'alpha',
    'person',
    'latest',
    'true',
    '0',
    'drop',
    '3D',
  ],
  ...[
    '0% 0% 100% 100%',
    '10px 10px 20px',
    '-1px 0 0 0',
    '1e999px',
    '99999999999999999999%',
    '0 0 0 0',
    '50%',
    '100%',
  ],
  ...[
    'original',
    'center',
    '50% 50%',
    '#fff',
    '81d4fa77',
    'red',
    'transparent',
    '#ggg',
    'NaN',
    'Infinity',
    '-0',
    '1e3',
  ],
  ...[
    'http://127.0.0.1:1/',
    'http://[::1]/',
    'file:///etc/passwd',
    'http://a@b/',
    'https://',
    'gopher://x',
    '//x',
    'x',
  ],
  ...[
    '',
    ' ',
    '\u0000',
    '\r\n',
    '\u{1f600}',
    '%00',
    '%',
    '+',
    '=',
    '&',
    '"',
    '\\',
    "'; DROP TABLE account;--",
    '{}',
    '[]',
    'null',
  ],
];

function value(dice: Dice, depth = 0): Value {
  const kind = dice.below(depth > 3 ? 6 : 9);
  if (kind < 4) return dice.of(words);
  if (kind === 4) return dice.of([0, 1, -1, 0.5, 1e300, 2 ** 53, true, false, null]);
  if (kind === 5) return dice.of(words).repeat(dice.below(50));
  if (kind === 6) return Array.from({ length: dice.below(4) }, () => value(dice, depth + 1));
  if (kind === 7) return Object.fromEntries([[dice.of(names), value(dice, depth + 1)]]);
  return dice.bytes(dice.below(40)).toString('latin1');
}

const scalar = (given: Value): string => (typeof given === 'string' ? given : JSON.stringify(given));

interface Files {
  readonly whole: readonly Buffer[];
}

/** An image, usually damaged. */
function image(dice: Dice, { whole }: Files): Buffer {
  const file = Buffer.from(dice.of(whole));
  switch (dice.below(6)) {
    case 0:
      return file;
    case 1:
      return file.subarray(0, dice.below(file.length));
    case 2:
      file[dice.below(file.length)] = dice.below(256);
      return file;
    case 3:
      for (let i = 0; i < 8; i++) file[dice.below(Math.min(64, file.length))] = dice.below(256);
      return file;
    case 4:
      return Buffer.concat([file.subarray(0, 16), dice.bytes(dice.below(200))]);
    default:
      return dice.bytes(dice.below(100));
  }
}

interface Body {
  readonly type: string | undefined;
  readonly bytes: Buffer;
}

/** A header of a part besides the required ones. */
function partHeader(dice: Dice): string {
  switch (dice.below(6)) {
    case 0:
      return `X-${dice.below(9)}: ${dice.of(words).repeat(dice.below(300))}`;
    case 1:
      return `Content-Disposition: form-data; ${dice.of(['filename="', 'name=', ';', '"', '\\"', 'filename*='])}`.repeat(
        1 + dice.below(40),
      );
    case 2:
      return Array.from({ length: dice.below(60) }, (_, i) => `X-${i}: a`).join('\r\n');
    case 3:
      return ` folded${dice.of([':', ''])} ${dice.of(words)}`;
    case 4:
      return dice.bytes(dice.below(40)).toString('latin1');
    default:
      return dice.of([':', 'a', 'a:', '\r', '\n', 'a: b\rc: d', '--b', '\u0000: x']);
  }
}

function multipart(dice: Dice, files: Files): Body {
  const boundary = dice.of(['b', 'x'.repeat(70), 'a b', '----=', '-', '-'.repeat(70), 'x'.repeat(71)]);
  const parts = Array.from({ length: dice.below(5) }, () => {
    const name = dice.of(names);
    const isFile = name.endsWith('_file') || dice.chance(0.1);
    const head = [
      `Content-Disposition: form-data; name="${name}"${isFile || dice.chance(0.05) ? '; filename="a.jpg"' : ''}`,
      ...(dice.chance(0.3)
        ? [`Content-Type: ${dice.of(['text/plain', 'image/jpeg', '', 'multipart/mixed; boundary=c'])}`]
        : []),
      ...(dice.chance(0.1)
        ? [
            `Content-Transfer-Encoding: ${dice.of(['8bit', 'binary', 'base64', 'quoted-printable', 'utf-16le', 'x'])}`,
          ]
        : []),
      ...(dice.chance(0.15) ? [partHeader(dice)] : []),
    ];
    if (dice.chance(0.05)) head.unshift(partHeader(dice));
    const content = isFile ? image(dice, files) : Buffer.from(scalar(value(dice)));
    return Buffer.concat([
      Buffer.from(`--${boundary}\r\n${head.join('\r\n')}\r\n\r\n`),
      content,
      Buffer.from('\r\n'),
    ]);
  });
  const bytes = Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);
  return { type: `multipart/form-data; boundary=${dice.chance(0.05) ? 'other' : boundary}`, bytes };
}

function urlencoded(dice: Dice, files: Files): Body {
  const pairs = Array.from({ length: dice.below(6) }, () => {
    const name = dice.of(names);
    const text = name.endsWith('_b64') ? image(dice, files).toString('base64') : scalar(value(dice));
    return dice.chance(0.8) ? `${encodeURIComponent(name)}=${encodeURIComponent(text)}` : `${name}=${text}`;
  });
  if (dice.chance(0.1))
    pairs.push(dice.of(['&', '=', '%', '%5B%5D', '+', 'a=b&', '%e2%82']).repeat(dice.below(2000)));
  return { type: 'application/x-www-form-urlencoded', bytes: Buffer.from(pairs.join('&')) };
}

function json(dice: Dice, files: Files): Body {
  const pairs = Array.from({ length: dice.below(6) }, () => {
    const name = dice.of(names);
    return [name, name.endsWith('_b64') ? image(dice, files).toString('base64') : value(dice)] as const;
  });
  const text = dice.chance(0.1) ? JSON.stringify(value(dice)) : JSON.stringify(Object.fromEntries(pairs));
  if (dice.chance(0.05)) {
    const nested = dice.of(['[', '{"a":', '{"a":[', '"a",', '1,', '\\"', '"\\u20ac"', ']', '}']);
    return { type: 'application/json', bytes: Buffer.from(`{"a":${nested.repeat(dice.below(3000))}${text}`) };
  }
  return { type: 'application/json', bytes: Buffer.from(text) };
}

function damaged(dice: Dice, { type, bytes }: Body): Body {
  if (dice.chance(0.75)) return { type, bytes };
  switch (dice.below(5)) {
    case 0:
      return { type, bytes: bytes.subarray(0, dice.below(bytes.length + 1)) };
    case 1:
      return {
        type: dice.of([
          undefined,
          '',
          'text/plain',
          'application/json; charset=utf-7',
          'multipart/form-data',
          'x/y',
          ';;',
        ]),
        bytes,
      };
    case 2: {
      const changed = Buffer.from(bytes);
      if (changed.length > 0) changed[dice.below(changed.length)] = dice.below(256);
      return { type, bytes: changed };
    }
    case 3:
      return { type, bytes: dice.bytes(dice.below(300)) };
    default:
      return { type, bytes: Buffer.concat([bytes, bytes]) };
  }
}

const collectGarbage = (): void => {
  setFlagsFromString('--expose_gc');
  (runInNewContext('gc') as () => void)();
};

test('20,000 malformed requests: no 5xx, no crash, no growth, every answer as documented', async (t) => {
  t.timeout((600 + seconds) * 1000);
  const service = await startService(t, { credits: 1_000_000, rate: 0, running: 16 });
  const published = new Published(openApiDocument('0'));
  const dice = new Dice();
  const files: Files = {
    whole: await Promise.all(
      (['jpeg', 'png', 'webp', 'gif'] as const).map((format) => scene({ width: 16, height: 12, format })),
    ),
  };
  const agent = new Agent({ connections: 16 });
  t.teardown(() => agent.close());
  const counts = new Map<string, number>();

  const one = async (): Promise<void> => {
    const where = dice.of([
      '/v1.0/cutout',
      '/v1.0/cutout',
      '/v1.0/removebg',
      '/v1.0/improve',
      '/v1.0/account',
      '/v1.0/x',
    ]);
    const method = where === '/v1.0/account' || dice.chance(0.03) ? 'GET' : 'POST';
    const { type, bytes } = damaged(dice, dice.of([multipart, urlencoded, json])(dice, files));
    const encoding = dice.chance(0.02)
      ? dice.of(['gzip', 'br', 'x', 'identity', ',', 'gzip, gzip'])
      : undefined;
    const answer = await request(service.url + where, {
      method,
      dispatcher: agent,
      headers: {
        ...(dice.chance(0.98) && { 'x-api-key': service.key }),
        ...(type !== undefined && { 'content-type': type }),
        ...(encoding && { 'content-encoding': encoding }),
        ...(dice.chance(0.2) && {
          accept: dice.of(['application/json', '*/*', ';;q=', 'application/json;q=x']),
        }),
        ...(dice.chance(0.1) && { 'idempotency-key': dice.of(words).replace(/[^\x20-\x7e]/g, '') }),
      },
      ...(method === 'POST' && { body: bytes }),
    });
    const text = Buffer.from(await answer.body.arrayBuffer()).toString();
    const { statusCode: status } = answer;
    counts.set(String(status), (counts.get(String(status)) ?? 0) + 1);
    if (status >= 500) t.fail(`${status} ${text}: ${type} ${bytes.toString('latin1')}`);
    const get = (name: string) => String(answer.headers[name.toLowerCase()] ?? '') || null;
    if (status === 404 || status === 405) {
      if (!/^\{"errors":\[\{"title":/.test(text)) t.fail(text);
      return;
    }
    const faults = published.faults(
      where,
      method === 'GET' ? 'get' : 'post',
      { status, headers: { get } },
      text,
    );
    if (faults.length > 0) t.fail(`${faults.join('; ')}: ${type} ${bytes.toString('latin1')}`);
  };

  let left = count;
  const end = performance.now() + seconds * 1000;
  const lane = async (limit: number) => {
    while (left > limit || (limit === 0 && performance.now() < end)) {
      left -= 1;
      await one();
    }
  };
  const lanes = (limit: number) => Promise.all(Array.from({ length: 16 }, () => lane(limit)));
  const used = () => {
    service.forgetLog();
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return (heapUsed + arrayBuffers) / 1e6;
  };

  await lanes(count * 0.75);
  const before = used();
  await lanes(0);
  const after = used();
  t.log(
    `seed ${seed}: ${[...counts]
      .sort()
      .map(([status, n]) => `${n} times ${status}`)
      .join(', ')}`,
  );
  t.log(`in use: ${before.toFixed(0)} MB after a quarter, ${after.toFixed(0)} MB at the end`);
  t.true(after < before + 15);
  t.is(await service.stores.ledger.openReservations(), 0);
  t.deepEqual(await service.stores.ledger.verify(), []);
  t.true((counts.get('200') ?? 0) > 100, 'some are whole');
});
