import test from 'ava';
import { ModelError } from '../../src/models/error.ts';
import { manifestSchema } from '../../src/models/manifest.ts';
import {
  chooseSelectorPrecision,
  formFor,
  operatorsText,
  type PrecisionQuestion,
  precisionChoices,
  refusedText,
} from '../../src/models/precision.ts';
import { tinyManifest } from '../fixtures/networks.ts';

const plain = tinyManifest({ kind: 'file', path: 'published.onnx' });
const both = manifestSchema.parse({ ...plain, int8: 'int8.json' });
const inBf16 = (bf16: number) => manifestSchema.parse({ ...plain, bf16 });

/** A choice for a processor that by default has no operators of Cutout. */
const ask = (question: Partial<PrecisionQuestion>): PrecisionQuestion => ({
  device: 'cpu',
  requested: 'auto',
  requestedOperators: 'auto',
  operators: [],
  ...question,
});

/** Precisions, with whose operators, in order. */
const choicesFor = (manifest: typeof plain, question: Partial<PrecisionQuestion>) =>
  precisionChoices(manifest, ask(question)).map(({ precision, operators }) =>
    operators === undefined ? precision : `${precision} ${operators}`,
  );

const sapphireRapids = ['amx_int8', 'avx512_vnni', 'avx512', 'avx2', 'amx_bf16', 'avx512_bf16'];
const zen4 = ['avx512_vnni', 'avx512', 'avx2', 'avx512_bf16'];
const zen3 = ['avx2'];

test('auto chooses between the operators of a network with a table, and without own ones from floats too', (t) => {
  t.deepEqual(choicesFor(both, { operators: zen4 }), ['int8 avx512_vnni', 'int8']);
  t.deepEqual(choicesFor(both, { operators: sapphireRapids }), ['int8 amx_int8', 'int8']);
  t.deepEqual(choicesFor(both, { operators: zen3 }), ['int8 avx2', 'int8']);
  t.deepEqual(choicesFor(both, {}), ['int8', 'fp32']);
  t.deepEqual(choicesFor(plain, { operators: zen3 }), ['fp32', 'int8 avx2']);
  t.deepEqual(choicesFor(plain, {}), ['fp32']);
});

test('CUTOUT_OPERATORS narrows what is chosen from', (t) => {
  t.deepEqual(choicesFor(plain, { operators: zen4, requestedOperators: 'avx2' }), ['fp32', 'int8 avx2']);
  t.deepEqual(choicesFor(plain, { operators: zen4, requested: 'int8' }), ['int8 avx512_vnni']);
  t.deepEqual(choicesFor(both, { operators: sapphireRapids, requestedOperators: 'avx2' }), ['int8 avx2']);
  t.deepEqual(choicesFor(both, { operators: sapphireRapids, requestedOperators: 'off' }), ['int8', 'fp32']);
  t.deepEqual(choicesFor(inBf16(0), { operators: zen4, requestedOperators: 'off' }), ['fp32']);
  t.deepEqual(choicesFor(inBf16(0), { operators: zen4, requestedOperators: 'avx512_vnni' }), ['fp32']);
  t.deepEqual(choicesFor(inBf16(0), { operators: sapphireRapids, requestedOperators: 'avx512_bf16' }), [
    'bf16 avx512_bf16',
    'fp32',
  ]);
  for (const [requestedOperators, message] of [
    ['avx_vnni', 'another processor: here it can be auto, off, avx512_vnni, avx512, avx2.'],
    ['avx512_bf16', 'another precision than int8: here it can be auto, off, avx512_vnni, avx512, avx2.'],
  ] as const)
    for (const manifest of requestedOperators === 'avx_vnni' ? [both, plain] : [both])
      t.throws(() => choicesFor(manifest, { operators: zen4, requestedOperators }), {
        code: 'MODEL_UNSUPPORTED',
        message: `CUTOUT_OPERATORS=${requestedOperators} is for ${message}`,
      });
});

test('bf16 comes before floats where photos showed that it loses little, after them where none did', (t) => {
  t.deepEqual(choicesFor(inBf16(0.002), { operators: zen4 }), ['bf16 avx512_bf16', 'fp32']);
  t.deepEqual(choicesFor(inBf16(0.0021), { operators: zen4 }), ['fp32']);
  t.deepEqual(choicesFor(plain, { operators: zen4 }), ['fp32', 'bf16 avx512_bf16', 'int8 avx512_vnni']);
  t.deepEqual(choicesFor(inBf16(0), { operators: zen3 }), ['fp32']);
  const all = manifestSchema.parse({ ...both, bf16: 0 });
  t.deepEqual(choicesFor(all, { operators: zen4 }), ['int8 avx512_vnni', 'int8']);
});

test('an explicit setting is used as it is', (t) => {
  const chosen = (question: Partial<PrecisionQuestion>) =>
    precisionChoices(both, ask({ operators: sapphireRapids, ...question }));
  t.deepEqual(chosen({ requested: 'fp32', requestedOperators: 'avx_vnni' }), [
    { precision: 'fp32', because: 'CUTOUT_PRECISION=fp32' },
  ]);
  const because = 'CUTOUT_PRECISION=int8';
  const [own, standard] = chosen({ requested: 'int8' });
  t.deepEqual(own, { precision: 'int8', operators: 'amx_int8', because });
  t.deepEqual(standard, { precision: 'int8', because });
  t.is(formFor(own), 'int8-operators');
  t.is(operatorsText(own), "Cutout's operators for amx_int8");
  t.is(operatorsText({ precision: 'int8' }), "ONNX Runtime's operators");
  t.is(operatorsText({ precision: 'fp32' }), undefined);
  t.deepEqual(chosen({ requested: 'int8', requestedOperators: 'off' }), [{ precision: 'int8', because }]);
  t.deepEqual(chosen({ requested: 'bf16' }), [
    { precision: 'bf16', operators: 'amx_bf16', because: 'CUTOUT_PRECISION=bf16' },
  ]);
});

test('a setting that cannot be satisfied is one sentence with the remedy', (t) => {
  t.throws(() => precisionChoices(plain, ask({ requested: 'int8' })), {
    instanceOf: ModelError,
    code: 'MODEL_UNSUPPORTED',
    message:
      "The network tiny has no table of 8-bit scales, and without Cutout's operators no 8-bit form: set CUTOUT_PRECISION to auto or fp32.",
  });
  for (const requested of ['int8', 'fp32', 'bf16'] as const) {
    t.throws(() => precisionChoices(both, ask({ device: 'cuda', requested })), {
      code: 'MODEL_UNSUPPORTED',
      message: `CUTOUT_PRECISION=${requested} is for the device cpu: on cuda, leave it at auto.`,
    });
  }
  const refused = (question: Partial<PrecisionQuestion>, message: RegExp) =>
    t.throws(() => precisionChoices(both, ask({ requested: 'bf16', operators: zen4, ...question })), {
      code: 'MODEL_UNSUPPORTED',
      message,
    });
  refused({ operators: zen3 }, /AVX-512 BF16.*to auto or fp32\.$/);
  refused({ requestedOperators: 'off' }, /set CUTOUT_OPERATORS to auto/);
  refused(
    { requestedOperators: 'avx512_vnni' },
    /for another precision than bf16: here it can be auto, off, avx512_bf16\.$/,
  );
});

test('a GPU gets what its provider takes: with CUDA a program where that can be made', (t) => {
  t.deepEqual(precisionChoices(both, ask({ device: 'cuda', operators: zen4 })), [
    { precision: 'fp16', form: 'gpu', because: 'the device cuda' },
  ]);
  const [tensorrt] = precisionChoices(both, ask({ device: 'tensorrt', operators: zen4 }));
  t.is(formFor(tensorrt), 'tensorrt');
});

test('the networks of subject points take bf16 by themselves, and floats only where all are to', (t) => {
  const little = inBf16(0.002);
  for (const requested of ['auto', 'int8', 'bf16'] as const) {
    // The device is that of the matting network.
    for (const device of ['cpu', 'cuda'] as const) {
      const ours = ask({ operators: zen4, requested, device });
      t.is(chooseSelectorPrecision(little, ours).operators, 'avx512_bf16');
      t.is(chooseSelectorPrecision(plain, ours).precision, 'fp32');
      t.is(chooseSelectorPrecision(little, ask({ requested, device })).precision, 'fp32');
    }
  }
  t.is(chooseSelectorPrecision(little, ask({ operators: zen4, requested: 'fp32' })).precision, 'fp32');
  const encoder = manifestSchema.parse({ ...plain, role: 'encoder' });
  t.is(chooseSelectorPrecision(encoder, ask({ operators: zen4 })).precision, 'fp32');
  t.is(chooseSelectorPrecision(encoder, ask({ operators: zen4, requested: 'bf16' })).precision, 'bf16');
  t.is(
    chooseSelectorPrecision(little, ask({ operators: zen4, requestedOperators: 'off' })).precision,
    'fp32',
  );
});

test('operators that failed their check are named to the operator', (t) => {
  t.is(refusedText({ refusedOperators: [] }), undefined);
  t.regex(
    refusedText({ refusedOperators: ['amx_bf16'] }) ?? '',
    /^Cutout's operators for amx_bf16 .*not used/,
  );
});
