import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'ava';
import { defaultAddonPath, defaultRuntimePath, loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { EngineError } from '../../src/engine/types.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'cutout-addon-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const oneSentence = (t: { false(value: boolean): void }, error: Error | undefined) =>
  t.false((error?.message ?? '\n').includes('\n'));

test('a missing addon is reported in one sentence that says how to build it', (t) => {
  const error = t.throws(() => loadAddon(path.join(folder, 'none.node')), {
    instanceOf: EngineError,
    code: 'ENGINE_RUNTIME',
    message: /none\.node' does not exist: build it again with `npm run setup`/,
  });
  oneSentence(t, error);
});

test('a damaged addon is reported in one sentence that says how to rebuild it', (t) => {
  const whole = readFileSync(defaultAddonPath);
  const cuts = [40, 3000, whole.length / 2, whole.length * 0.9].map((size, i) => {
    const file = path.join(folder, `cut${i}.node`);
    writeFileSync(file, whole.subarray(0, size));
    return file;
  });
  const text = path.join(folder, 'text.node');
  writeFileSync(text, 'no addon');
  for (const file of [...cuts, text]) {
    const error = t.throws(() => loadAddon(file), {
      instanceOf: EngineError,
      code: 'ENGINE_RUNTIME',
      message: /cannot be loaded \(.*\): build it again/,
    });
    oneSentence(t, error);
  }
});

test('an addon with another ABI is refused', (t) => {
  const other = path.join(folder, 'other.cjs');
  for (const source of ['module.exports = { abi: 0 };', 'module.exports = null;']) {
    writeFileSync(other, source);
    const error = t.throws(() => loadAddon(other), {
      instanceOf: EngineError,
      code: 'ENGINE_RUNTIME',
      message: /not an addon of this version/,
    });
    oneSentence(t, error);
  }
});

// A process opens one library for its lifetime: the wrong ones come first, in this order.
test.serial(
  'a missing, damaged or unrelated library is reported in one sentence, and a correct one still opens',
  (t) => {
    const native = loadAddon();
    const good = defaultRuntimePath();
    const cut = path.join(folder, 'libonnxruntime.so.1');
    writeFileSync(cut, readFileSync(good).subarray(0, 100_000));
    const text = path.join(folder, 'text.so');
    writeFileSync(text, 'no library\n'.repeat(1000));
    const cases: [string, RegExp][] = [
      [path.join(folder, 'none.so'), /could not be opened: .*none\.so/],
      [cut, /could not be opened: .*libonnxruntime\.so\.1/],
      [text, /could not be opened: .*text\.so/],
      [folder, /could not be opened/],
      [defaultAddonPath, /is no ONNX Runtime library/],
    ];
    for (const [runtimePath, message] of cases) {
      const error = t.throws(() => createEngine(native, engineOptions({ runtimePath })), {
        instanceOf: EngineError,
        code: 'ENGINE_RUNTIME',
        message,
      });
      oneSentence(t, error);
    }
    t.is(native.versions().onnxruntime, '');
    createEngine(native, engineOptions());
    t.not(native.versions().onnxruntime, '');
    createEngine(native, engineOptions());
    t.throws(() => createEngine(native, engineOptions({ runtimePath: text })), {
      code: 'ENGINE_RUNTIME',
      message: /already open from/,
    });
  },
);
