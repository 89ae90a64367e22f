import test from 'ava';
import { ModelError } from '../../src/models/error.ts';
import { manifestSchema } from '../../src/models/manifest.ts';
import {
  choosePrecision,
  chooseSelectorPrecision,
  dotProductOf,
  formFor,
  formsOf,
  operatorsText,
  type PrecisionQuestion,
  refusedText,
} from '../../src/models/precision.ts';
import { tinyManifest } from '../fixtures/networks.ts';

const plain = tinyManifest({ kind: 'file', path: 'published.onnx' });
const both = manifestSchema.parse({ ...plain, int8: 'int8.json' });

/** A choice for a processor that by default has no operators of Cutout. */
const ask = (question: Partial<PrecisionQuestion>): PrecisionQuestion => ({
  device: 'cpu',
  requested: 'auto',
  requestedOperators: 'auto',
  instructionSets: [],
  operators: [],
  ...question,
});

const skylake = ['avx512', 'avx2'];
const cascadeLake = ['avx512_vnni', 'avx512', 'avx2'];
const alderLake = ['avx_vnni', 'avx2'];
const graviton2 = ['asimddp', 'asimd'];
const graviton3 = ['i8mm', 'asimddp', 'asimd'];
const raspberryPi4 = ['asimd'];
const zen3 = { instructionSets: ['avx2'], operators: ['avx2'] };

test('auto is 8 bits only if the processor has dot products and the network has a table', (t) => {
  const auto = (instructionSets: readonly string[], manifest = both) =>
    choosePrecision(manifest, ask({ instructionSets }));
  t.deepEqual(auto(cascadeLake), { precision: 'int8', because: 'avx512_vnni' });
  t.deepEqual(auto(alderLake), { precision: 'int8', because: 'avx_vnni' });
  t.deepEqual(auto(graviton2), { precision: 'int8', because: 'asimddp' });
  for (const without of [skylake, raspberryPi4, []]) {
    t.deepEqual(auto(without), { precision: 'fp32', because: 'no 8-bit dot product in this processor' });
  }
  t.deepEqual(auto(cascadeLake, plain), { precision: 'fp32', because: 'no 8-bit form of this network' });
});

test('an explicit setting is used, with a warning if it is unwise', (t) => {
  const chosen = (requested: 'fp32' | 'int8', instructionSets: readonly string[]) =>
    choosePrecision(both, ask({ requested, instructionSets }));
  t.is(chosen('fp32', cascadeLake).precision, 'fp32');
  t.is(chosen('int8', cascadeLake).warning, undefined);
  t.is(chosen('int8', skylake).precision, 'int8');
  t.regex(chosen('int8', skylake).warning ?? '', /no 8-bit dot product.*CUTOUT_PRECISION=fp32/);
});

test('a setting that cannot be satisfied is one sentence with the remedy', (t) => {
  t.throws(() => choosePrecision(plain, ask({ requested: 'int8', instructionSets: cascadeLake })), {
    instanceOf: ModelError,
    code: 'MODEL_UNSUPPORTED',
    message: 'The network tiny has no 8-bit form: set CUTOUT_PRECISION to auto or fp32.',
  });
  for (const requested of ['int8', 'fp32'] as const) {
    t.throws(() => choosePrecision(both, ask({ device: 'cuda', requested })), {
      code: 'MODEL_UNSUPPORTED',
      message: `CUTOUT_PRECISION=${requested} is for the device cpu: on cuda, leave it at auto.`,
    });
  }
});

test('a GPU gets what its provider takes: with CUDA a program where that can be made', (t) => {
  const choice = choosePrecision(
    both,
    ask({ device: 'cuda', instructionSets: cascadeLake, operators: cascadeLake }),
  );
  t.deepEqual(choice, { precision: 'fp16', form: 'gpu', because: 'the device cuda' });
  t.deepEqual(formsOf(both, 'cuda', ['avx512_vnni']), ['gpu']);
  t.deepEqual(formsOf(both, 'tensorrt', ['avx512_vnni']), ['fp16']);
  t.deepEqual(formsOf(both, 'cpu', ['avx512_vnni']), ['fp32', 'int8-operators', 'int8']);
  t.deepEqual(formsOf(both, 'cpu', []), ['fp32', 'int8']);
  t.deepEqual(formsOf(plain, 'cpu', ['avx512_vnni']), ['fp32']);
});

test('the best dot product is named', (t) => {
  t.is(dotProductOf(['amx_int8', ...cascadeLake]), 'amx_int8');
  t.is(dotProductOf(skylake), undefined);
});

test('8 bits are computed by the best operators of Cutout that the setting allows, or by those of ONNX Runtime', (t) => {
  const sapphireRapids = {
    instructionSets: ['amx_int8', ...cascadeLake],
    operators: ['amx_int8', 'avx512_vnni'],
  };
  const best = choosePrecision(both, ask(sapphireRapids));
  t.is(best.operators, 'amx_int8');
  t.is(formFor(best), 'int8-operators');
  t.is(operatorsText(best), "Cutout's operators for amx_int8");
  const lesser = choosePrecision(
    both,
    ask({ ...sapphireRapids, requestedOperators: 'avx512_vnni', requested: 'int8' }),
  );
  t.is(lesser.operators, 'avx512_vnni');
  t.is(lesser.because, 'CUTOUT_PRECISION=int8');
  const off = choosePrecision(both, ask({ ...sapphireRapids, requestedOperators: 'off' }));
  t.deepEqual(off, { precision: 'int8', because: 'amx_int8' });
  t.is(formFor(off), 'int8');
  t.is(operatorsText(off), "ONNX Runtime's operators");
  // Not measured to be faster: only if named.
  for (const [processor, named] of [
    [{ instructionSets: alderLake, operators: ['avx_vnni'] }, 'avx_vnni'],
    [{ instructionSets: graviton2, operators: ['asimddp'] }, 'asimddp'],
    [{ instructionSets: graviton3, operators: ['i8mm', 'asimddp'] }, 'i8mm'],
  ] as const) {
    t.is(choosePrecision(both, ask(processor)).operators, undefined);
    t.is(choosePrecision(both, ask({ ...processor, requestedOperators: named })).operators, named);
  }
  const floats = choosePrecision(
    both,
    ask({ ...sapphireRapids, requested: 'fp32', requestedOperators: 'avx_vnni' }),
  );
  t.is(formFor(floats), 'fp32');
  t.is(operatorsText(floats), undefined);
  t.throws(() => choosePrecision(both, ask({ ...sapphireRapids, requestedOperators: 'avx_vnni' })), {
    code: 'MODEL_UNSUPPORTED',
    message:
      'CUTOUT_OPERATORS=avx_vnni is for another processor: here it can be auto, off, amx_int8, avx512_vnni.',
  });
});

test('without dot products, 8 bits are worthwhile with the operators of Cutout only', (t) => {
  const auto = choosePrecision(both, ask(zen3));
  t.deepEqual(auto, { precision: 'int8', operators: 'avx2', because: 'avx2' });
  t.is(formFor(auto), 'int8-operators');
  t.deepEqual(choosePrecision(both, ask({ ...zen3, requestedOperators: 'avx2' })), auto);
  const floats = { precision: 'fp32', because: 'no 8-bit dot product in this processor' } as const;
  t.deepEqual(choosePrecision(both, ask({ ...zen3, requestedOperators: 'off' })), floats);
  t.deepEqual(choosePrecision(plain, ask(zen3)).precision, 'fp32');
  const requested = { ...zen3, requested: 'int8' } as const;
  t.deepEqual(choosePrecision(both, ask(requested)), {
    precision: 'int8',
    operators: 'avx2',
    because: 'CUTOUT_PRECISION=int8',
  });
  t.regex(
    choosePrecision(both, ask({ ...requested, requestedOperators: 'off' })).warning ?? '',
    /not faster/,
  );
  const server = { instructionSets: skylake, operators: ['avx512', 'avx2'] };
  t.deepEqual(choosePrecision(both, ask(server)), {
    precision: 'int8',
    operators: 'avx512',
    because: 'avx512',
  });
  t.is(choosePrecision(both, ask({ ...server, requestedOperators: 'avx2' })).operators, 'avx2');
  t.deepEqual(choosePrecision(both, ask({ ...server, requestedOperators: 'off' })), floats);
  // With dot products: only if named.
  const client = { instructionSets: alderLake, operators: ['avx_vnni', 'avx2'] };
  t.is(choosePrecision(both, ask(client)).operators, undefined);
  t.is(choosePrecision(both, ask({ ...client, requestedOperators: 'avx2' })).operators, 'avx2');
  t.throws(() => choosePrecision(both, ask({ instructionSets: raspberryPi4, requestedOperators: 'avx2' })), {
    message: 'CUTOUT_OPERATORS=avx2 is for another processor: here it can be auto, off.',
  });
});

test('bf16 is taken for networks without a table that lose little in it, where the processor has it', (t) => {
  const [little, much] = [0.002, 0.0021].map((bf16) => manifestSchema.parse({ ...plain, bf16 }));
  if (!little || !much) throw new Error('no manifests');
  const zen4 = {
    instructionSets: ['avx512_vnni', 'avx512_bf16', 'avx512'],
    operators: ['avx512_vnni', 'avx512_bf16'],
  };
  const auto = choosePrecision(little, ask(zen4));
  t.deepEqual(auto, {
    precision: 'bf16',
    operators: 'avx512_bf16',
    because: 'no 8-bit form of this network',
  });
  t.is(formFor(auto), 'bf16');
  t.is(operatorsText(auto), "Cutout's operators for avx512_bf16");
  t.is(choosePrecision(little, ask({ ...zen4, requestedOperators: 'avx512_bf16' })).precision, 'bf16');
  // It loses too much, was not measured, or Cutout's operators are not wanted or not there.
  for (const choice of [
    choosePrecision(much, ask(zen4)),
    choosePrecision(plain, ask(zen4)),
    choosePrecision(little, ask({ ...zen4, requestedOperators: 'off' })),
    choosePrecision(little, ask({ ...zen4, requestedOperators: 'avx512_vnni' })),
    choosePrecision(little, ask({ instructionSets: cascadeLake, operators: ['avx512_vnni'] })),
  ]) {
    t.deepEqual(choice, { precision: 'fp32', because: 'no 8-bit form of this network' });
  }
  // A table is better.
  const all = manifestSchema.parse({ ...both, bf16: 0 });
  t.is(choosePrecision(all, ask(zen4)).operators, 'avx512_vnni');
  t.deepEqual(formsOf(all, 'cpu', zen4.operators), ['fp32', 'bf16', 'int8-operators', 'int8']);
  t.deepEqual(formsOf(both, 'cpu', ['avx512_bf16']), ['fp32', 'int8']);
});

test('the networks of subject points take bf16 by themselves, and floats only where all are to', (t) => {
  const little = manifestSchema.parse({ ...plain, bf16: 0.002 });
  const zen4 = { instructionSets: ['avx512_vnni', 'avx512_bf16'], operators: ['avx512_vnni', 'avx512_bf16'] };
  for (const requested of ['auto', 'int8', 'bf16'] as const) {
    // The device is that of the matting network.
    for (const device of ['cpu', 'cuda'] as const) {
      const ours = ask({ ...zen4, requested, device });
      t.is(chooseSelectorPrecision(little, ours).operators, 'avx512_bf16');
      t.is(chooseSelectorPrecision(plain, ours).precision, 'fp32');
      t.is(chooseSelectorPrecision(little, ask({ requested, device })).precision, 'fp32');
    }
  }
  t.is(chooseSelectorPrecision(little, ask({ ...zen4, requested: 'fp32' })).precision, 'fp32');
  const encoder = manifestSchema.parse({ ...plain, role: 'encoder' });
  t.is(chooseSelectorPrecision(encoder, ask(zen4)).precision, 'fp32');
  t.is(chooseSelectorPrecision(encoder, ask({ ...zen4, requested: 'bf16' })).precision, 'bf16');
  t.is(chooseSelectorPrecision(little, ask({ ...zen4, requestedOperators: 'off' })).precision, 'fp32');
});

test('CUTOUT_PRECISION=bf16 is taken as it is, or refused with the remedy', (t) => {
  const requested = 'bf16';
  const sapphireRapids = {
    instructionSets: ['amx_int8', 'avx512_vnni', 'amx_bf16', 'avx512_bf16'],
    operators: ['amx_int8', 'avx512_vnni', 'amx_bf16', 'avx512_bf16'],
  };
  t.deepEqual(choosePrecision(both, ask({ ...sapphireRapids, requested })), {
    precision: 'bf16',
    operators: 'amx_bf16',
    because: 'CUTOUT_PRECISION=bf16',
  });
  const refused = (question: Partial<PrecisionQuestion>, message: RegExp) =>
    t.throws(() => choosePrecision(both, ask({ requested, ...question })), {
      code: 'MODEL_UNSUPPORTED',
      message,
    });
  refused({ instructionSets: cascadeLake, operators: ['avx512_vnni'] }, /AVX-512 BF16.*to auto or fp32\.$/);
  refused({ ...sapphireRapids, requestedOperators: 'off' }, /set CUTOUT_OPERATORS to auto/);
  refused(
    { ...sapphireRapids, requestedOperators: 'avx512_vnni' },
    /for another precision than bf16: here it can be auto, off, amx_bf16, avx512_bf16\.$/,
  );
  refused({ device: 'cuda' }, /is for the device cpu/);
});

test('operators that failed their check are named to the operator', (t) => {
  t.is(refusedText({ refusedOperators: [] }), undefined);
  t.regex(
    refusedText({ refusedOperators: ['amx_bf16'] }) ?? '',
    /^Cutout's operators for amx_bf16 .*not used/,
  );
});
