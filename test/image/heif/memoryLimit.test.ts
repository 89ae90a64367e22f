import test from 'ava';
import { withMemoryLimit } from '../../../src/image/heif/memoryLimit.ts';

const page = 65_536;

/** A module with a memory of 2 to 32,768 pages, exported as `m`, behind a custom section. */
const module = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[0, 3, 1, 0x78, 5],
  ...[5, 6, 1, 1, 2, 0x80, 0x80, 2],
  ...[7, 5, 1, 1, 0x6d, 2, 0],
]);

interface Memory {
  grow(pages: number): number;
}

/** Node.js' types declare WebAssembly with the DOM only. */
const { WebAssembly } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Module: new (bytes: Uint8Array) => object;
    readonly Instance: new (module: object) => { readonly exports: { readonly m: Memory } };
  };
};

const memoryOf = (wasm: Uint8Array): Memory =>
  new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports.m;

test('the memory of a module grows to the limit and no further', (t) => {
  for (const pages of [3, 127, 128, 300]) {
    const memory = memoryOf(withMemoryLimit(module, pages * page - 5));
    t.is(memory.grow(pages - 2), 2);
    t.throws(() => memory.grow(1), { instanceOf: RangeError });
  }
});

test('a limit below what the module starts with, or above its own, is the nearest that it can have', (t) => {
  t.throws(() => memoryOf(withMemoryLimit(module, 1)).grow(1), { instanceOf: RangeError });
  t.deepEqual(withMemoryLimit(module, 2 ** 33), module);
});

test('the module itself stays as it is; one without a limit is refused', (t) => {
  const before = Uint8Array.from(module);
  withMemoryLimit(module, 5 * page);
  t.deepEqual(module, before);
  t.throws(() => withMemoryLimit(Uint8Array.from([...module.subarray(0, 8), 5, 3, 1, 0, 2]), page));
  t.throws(() => withMemoryLimit(module.subarray(0, 8), page));
});
