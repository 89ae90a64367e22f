import { inflateRawSync } from 'node:zlib';
import test from 'ava';
import fc from 'fast-check';
import { loadPng } from './pngAddon.ts';
import { noise } from './pngImages.ts';

const png = loadPng();
const EFFORTS = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/** Literals, runs and copies at any distance: the cases of an LZ77 encoder. */
const mixedBytes = fc
  .array(
    fc.oneof(
      fc.record({ kind: fc.constant('fresh' as const), bytes: fc.uint8Array({ maxLength: 400 }) }),
      fc.record({
        kind: fc.constant('run' as const),
        value: fc.integer({ min: 0, max: 255 }),
        length: fc.integer({ min: 1, max: 3000 }),
      }),
      fc.record({
        kind: fc.constant('copy' as const),
        back: fc.integer({ min: 1, max: 40_000 }),
        length: fc.integer({ min: 3, max: 600 }),
      }),
    ),
    { maxLength: 60 },
  )
  .map((pieces) => {
    const bytes: number[] = [];
    for (const piece of pieces) {
      if (piece.kind === 'fresh') bytes.push(...piece.bytes);
      else if (piece.kind === 'run') bytes.push(...Array<number>(piece.length).fill(piece.value));
      else {
        for (let i = 0; i < piece.length; i++) bytes.push(bytes[bytes.length - piece.back] ?? i & 7);
      }
    }
    return Uint8Array.from(bytes);
  });

/** inflateRawSync refuses an unterminated stream; bytes after its end would show in the length. */
function inflate(stream: Buffer): Buffer {
  const result: unknown = inflateRawSync(stream, { info: true });
  const { buffer, engine } = result as { buffer: Buffer; engine: { bytesWritten: number } };
  if (engine.bytesWritten !== stream.length) throw new Error('bytes behind the deflate stream');
  return buffer;
}

test('any bytes in any number of calls inflate to themselves, within the stated bound', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.array(fc.oneof(mixedBytes, fc.uint8Array({ maxLength: 3000 })), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...EFFORTS),
        fc.constantFrom([0, 1], [1 + 4 * 50, 4], [1 + 77, 1], [1 + 4, 4]),
        (parts, effort, [row = 0, pixel = 1]) => {
          const stream = png.deflate(parts, effort, row, pixel);
          const bound = parts.reduce((sum, part) => sum + png.deflateBound(part.length), 0);
          return stream.length <= bound && inflate(stream).equals(Buffer.concat(parts));
        },
      ),
      { numRuns: 300 },
    ),
  );
});

test('no bytes give a valid stream', (t) => {
  for (const effort of EFFORTS) {
    t.is(inflate(png.deflate([new Uint8Array(0)], effort, 0, 1)).length, 0);
    t.is(inflate(png.deflate([new Uint8Array(0), new Uint8Array(0)], effort, 0, 1)).length, 0);
  }
});

test('noise of every size around the block limits is stored within the bound', (t) => {
  const next = noise(3);
  for (const size of [1, 32_767, 32_768, 32_769, 65_535, 65_536, 131_073]) {
    const bytes = Uint8Array.from({ length: size }, next);
    for (const effort of EFFORTS) {
      const stream = png.deflate([bytes], effort, 0, 1);
      t.true(inflate(stream).equals(bytes));
      t.true(stream.length <= png.deflateBound(size));
      t.true(stream.length <= size + 6 * (size / 32_768 + 2));
    }
  }
});

test('literals unlike those that the least effort samples are stored within the bound', (t) => {
  const next = noise(17);
  for (const size of [32_768, 65_536, 262_144]) {
    // Eight bytes of every 128 are sampled: these are few values, the others noise.
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i % 128 < 8 ? (i * 37) % 11 : next()));
    const stream = png.deflate([bytes], 1, 0, 1);
    t.true(inflate(stream).equals(bytes));
    t.true(stream.length <= png.deflateBound(size), `${stream.length} bytes for ${size}`);
  }
});

test('matches reach exactly the window of 32768 bytes, never beyond', (t) => {
  const next = noise(11);
  const phrase = Uint8Array.from({ length: 64 }, next);
  for (const distance of [32_700, 32_767, 32_768, 32_769, 33_000]) {
    const filling = Uint8Array.from({ length: distance - phrase.length }, next);
    const bytes = Buffer.concat([phrase, filling, phrase]);
    for (const effort of EFFORTS) {
      t.true(inflate(png.deflate([bytes], effort, 0, 1)).equals(bytes), `${distance}, effort ${effort}`);
    }
  }
});

test('runs of every length around the longest match', (t) => {
  const wrong: string[] = [];
  for (let length = 1; length < 1100; length += length > 10 && length < 250 ? 17 : 1) {
    const bytes = Buffer.concat([Buffer.from('abc'), Buffer.alloc(length, 0x7a), Buffer.from('xy')]);
    for (const effort of [1, 3, 6]) {
      if (!inflate(png.deflate([bytes], effort, 0, 1)).equals(bytes))
        wrong.push(`${length}, effort ${effort}`);
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

/** Bits of an optimal prefix code without codes longer than `limit`: package-merge, with lists kept whole. */
function optimalLimitedBits(counts: readonly number[], limit: number): number {
  const leaves = counts.flatMap((count, symbol) => (count > 0 ? [{ weight: count, symbols: [symbol] }] : []));
  const sorted = (items: typeof leaves) => items.sort((a, b) => a.weight - b.weight);
  let list = sorted([...leaves]);
  for (let level = 1; level < limit; level++) {
    const pairs = [];
    for (let i = 0; i + 1 < list.length; i += 2) {
      const [a, b] = list.slice(i, i + 2);
      if (a && b) pairs.push({ weight: a.weight + b.weight, symbols: [...a.symbols, ...b.symbols] });
    }
    list = sorted([...leaves, ...pairs]);
  }
  const chosen = list.slice(0, 2 * leaves.length - 2).flatMap(({ symbols }) => symbols);
  return chosen.reduce((sum, symbol) => sum + (counts[symbol] ?? 0), 0);
}

test('code lengths form a complete code within the limit, optimal under it', (t) => {
  const counts = fc.array(
    fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: 9 }),
      fc.integer({ min: 0, max: 18 }).map((power) => 2 ** power),
    ),
    { minLength: 2, maxLength: 64 },
  );
  t.notThrows(() =>
    fc.assert(
      fc.property(counts, fc.constantFrom(6, 7, 9, 14, 15), (values, limit) => {
        const lengths = png.codeLengths(Uint32Array.from(values), limit);
        const spent = lengths.reduce((sum, length) => sum + (length > 0 ? 2 ** -length : 0), 0);
        const everyUsed = values.every((count, i) => count === 0 || (lengths[i] ?? 0) > 0);
        const used = values.filter((count) => count > 0).length;
        const bits = values.reduce((sum, count, i) => sum + count * (lengths[i] ?? 0), 0);
        return (
          spent === 1 &&
          Math.max(...lengths) <= limit &&
          everyUsed &&
          (used < 2 || bits === optimalLimitedBits(values, limit))
        );
      }),
      { numRuns: 200 },
    ),
  );
});

test('counts like the Fibonacci numbers are cut to the limit', (t) => {
  const counts = [1, 1];
  while (counts.length < 40) counts.push((counts.at(-1) ?? 0) + (counts.at(-2) ?? 0));
  for (const limit of [6, 9, 14, 15]) {
    const lengths = png.codeLengths(Uint32Array.from(counts), limit);
    t.is(Math.max(...lengths), limit);
    const bits = counts.reduce((sum, count, i) => sum + count * (lengths[i] ?? 0), 0);
    t.is(bits, optimalLimitedBits(counts, limit));
  }
});
