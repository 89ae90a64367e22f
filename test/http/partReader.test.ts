import test from 'ava';
import fc from 'fast-check';
import { PartReader } from '../../src/http/body/partReader.ts';

/** What a reader makes of a body that arrives in these pieces. */
function read(pieces: readonly Buffer[], maxHeaders = 100) {
  const parts: { headers?: string; content: string; ended?: true }[] = [];
  const reader = new PartReader('b', maxHeaders, {
    count: () => void parts.push({ content: '' }),
    open: (headers) => {
      if (headers.length > maxHeaders) throw new RangeError(`${headers.length} characters`);
      const part = Object.assign(parts.at(-1) ?? { content: '' }, { headers });
      return {
        write: (piece) => {
          part.content += piece.toString('latin1');
        },
        end: () => {
          part.ended = true;
        },
      };
    },
  });
  for (const piece of pieces) reader.write(piece);
  return { parts, complete: reader.complete };
}

/** The body cut at these offsets. */
function cutAt(body: Buffer, offsets: readonly number[]): readonly Buffer[] {
  const cuts = [0, ...offsets.map((offset) => offset % body.length).toSorted((a, b) => a - b), body.length];
  return cuts.slice(1).map((end, i) => body.subarray(cuts[i], end));
}

const headers = '\r\nX: y\r\n\r\n';
const form = (contents: readonly string[], before = '', behind = '') =>
  Buffer.from(
    `${before}${contents.map((content) => `--b${headers}${content}\r\n`).join('')}--b--${behind}`,
    'latin1',
  );

/** Text that is as close to a delimiter as text can be. */
const content = fc
  .array(fc.constantFrom('\r', '\n', '\r\n', '-', '--', '\r\n--', '\r\n-', 'b', 'x', '\xff', '\r\n\r\n'), {
    maxLength: 40,
  })
  .map((words) => words.join(''))
  .filter((text) => !`\r\n${text}\r\n`.includes('\r\n--b'));

test('parts are the same however their body is cut into pieces', (t) => {
  fc.assert(
    fc.property(
      fc.array(content, { maxLength: 4 }),
      content.map((text) => (text === '' ? '' : `${text}\r\n`)),
      content,
      fc.array(fc.nat(), { maxLength: 60 }),
      (contents, before, behind, offsets) => {
        const body = form(contents, before, behind);
        const { parts, complete } = read(cutAt(body, offsets));
        t.true(complete);
        t.deepEqual(
          parts,
          contents.map((text) => ({ content: text, headers: '\r\nX: y', ended: true })),
        );
      },
    ),
    { numRuns: 500 },
  );
});

test('a body is complete with its last delimiter only, and what follows is not read', (t) => {
  const body = form(['one', 'two']);
  for (let length = 0; length < body.length; length++)
    t.false(read([body.subarray(0, length)]).complete, `${length} bytes`);
  t.true(read([body]).complete);
  t.is(read([form(['one'], '', '\r\n--b\r\nX: y\r\n\r\nmore')]).parts.length, 1);
});

test('a part that ends within its headers is counted and carries nothing', (t) => {
  const body = Buffer.from('--b\r\n--b\r\nX: y\r\n\r\n--b--');
  for (const pieces of [[body], [...body].map((byte) => Buffer.from([byte]))])
    t.deepEqual(read(pieces), { parts: [{ content: '' }, { content: '' }], complete: true });
});

test('headers without end are cut off behind the limit, in pieces of any size', (t) => {
  const body = Buffer.from(`--b\r\nX: ${'y'.repeat(5000)}`);
  for (const size of [1, 7, 64, body.length]) {
    const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, i) =>
      body.subarray(i * size, (i + 1) * size),
    );
    const error = t.throws(() => read(pieces), { instanceOf: RangeError });
    const length = Number(error?.message.split(' ')[0]);
    t.true(length > 100 && length <= 104, error?.message);
  }
  const longest = Buffer.from(`--b${'y'.repeat(100)}\r\n\r\nz\r\n--b--`);
  t.like(read([longest]).parts, [{ headers: 'y'.repeat(100), content: 'z' }]);
});
