import test from 'ava';
import { scanJson } from '../../src/http/body/json.ts';
import { maxShortText, pieceBytes } from '../../src/http/body/longTexts.ts';
import { decodeUrlencoded, scanUrlencoded } from '../../src/http/body/urlencoded.ts';
import { random as numbers } from '../fixtures/random.ts';

/** Parts of a body in which a wrong cut would show. */
const units = ['a', '/', ' ', 'é', '€', '😀', '\\', '"', '\n', '\u0001', '+', '%', '&', '=', '[', ']', '%4'];

/** At least that many characters; some units come in runs longer than the distance by which a piece is cut early. */
function drawn(length: number, random: () => number): string {
  const parts: string[] = [];
  for (let size = 0; size < length; ) {
    const run = 1 + Math.floor(random() * (random() < 0.05 ? 3000 : 3));
    const part = (units[Math.floor(random() * units.length)] ?? '').repeat(run);
    parts.push(part);
    size += part.length;
  }
  return parts.join('');
}

async function parsedJson(body: Buffer) {
  const { bytes, restore } = await (await scanJson(body)).shorten();
  return { rest: bytes.length, value: restore(JSON.parse(bytes.toString())) as Record<string, unknown> };
}

async function parsedForm(body: string): Promise<Record<string, unknown>> {
  const { bytes, restore } = await (await scanUrlencoded(Buffer.from(body))).shorten();
  const pairs = bytes.toString().split('&');
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      return [decodeUrlencoded(pair.slice(0, at)), restore(decodeUrlencoded(pair.slice(at + 1)))];
    }),
  );
}

/** Without the megabytes that AVA would print. */
const equal = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

test('long texts of JSON equal the result of parsing the whole', async (t) => {
  const random = numbers(1);
  const texts = {
    image_file_b64: drawn(2.5 * pieceBytes, random),
    nested: { person: drawn(2 * maxShortText, random), car: 'short' },
    list: [drawn(maxShortText, random), drawn(2 * maxShortText, random)],
    number: 1,
  };
  const plain = JSON.stringify(texts);
  for (const body of [
    plain,
    plain.replaceAll('/', '\\/').replaceAll('€', '\\u20ac'),
    plain.replaceAll('a', '\\u0061'),
  ]) {
    const { rest, value } = await parsedJson(Buffer.from(body));
    t.true(rest < 4 * maxShortText, `${rest} bytes are left to the parser`);
    t.true(equal(value, JSON.parse(body)));
  }
});

for (const [title, piece] of [
  ['escaped backslashes', '\\\\'],
  ['escapes', '\\u0041'],
  ['characters of four bytes', '😀'],
] as const)
  test(`a long text of ${title} only is decoded in pieces`, async (t) => {
    const text = piece.repeat((3 * pieceBytes) / Buffer.byteLength(piece));
    const { value } = await parsedJson(Buffer.from(`{"a":"${text}"}`));
    t.true(value['a'] === JSON.parse(`"${text}"`));
  });

test('a long text that is invalid UTF-8 is decoded as a short one is', async (t) => {
  for (const byte of [0x80, 0xff, 0xf0]) {
    const text = Buffer.alloc(2.5 * pieceBytes, byte);
    const { value } = await parsedJson(Buffer.concat([Buffer.from('{"a":"'), text, Buffer.from('"}')]));
    t.true(value['a'] === text.toString(), `${byte}`);
  }
});

test('no input can imitate a placeholder', async (t) => {
  const long = 'x'.repeat(2 * maxShortText);
  const { bytes } = await (await scanJson(Buffer.from(`{"a":"${long}"}`))).shorten();
  const { a: standIn } = JSON.parse(bytes.toString()) as { a: string };
  const { value } = await parsedJson(Buffer.from(`{"a":"${long}","b":"${standIn}"}`));
  t.is(value['b'], standIn);
});

test('long texts with invalid JSON are refused', async (t) => {
  const long = 'x'.repeat(2 * maxShortText);
  for (const text of [`${long}\n${long}`, `${long}\\x${long}`, `${long}\\u12`])
    await t.throwsAsync(parsedJson(Buffer.from(`{"a":"${text}"}`)), { instanceOf: SyntaxError });
  await t.throwsAsync(scanJson(Buffer.from(`{"a":"${long}`)), { instanceOf: SyntaxError });
});

test('long values of a form equal the result of parsing the whole', async (t) => {
  const random = numbers(2);
  const fields = {
    image_file_b64: drawn(2.5 * pieceBytes, random),
    tag: drawn(2 * maxShortText, random),
    size: 'full',
  };
  const plain = new URLSearchParams(fields).toString();
  for (const body of [plain, plain.replaceAll('a', '%61'), plain.replaceAll('+', '%20')])
    t.true(equal(await parsedForm(body), Object.fromEntries(new URLSearchParams(body))));
});
