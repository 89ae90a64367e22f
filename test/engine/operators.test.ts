import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import type { OnnxForm } from '../../src/compiler/form.ts';
import { INT8, UINT8 } from '../../src/compiler/onnx/graph.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import type { EngineOptions, NetworkSpec } from '../../src/engine/types.ts';
import { operatorsOf } from '../../src/models/precision.ts';
import { engineOptions, halves, Networks, planFor, until } from '../fixtures/engineSetup.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { BF16_KERNELS, leaveOutKernels } from '../fixtures/lowPrecisionKernels.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';

const native = loadAddon();
const operators = operatorsOf('int8', native.versions().operators);
const bf16Operators = operatorsOf('bf16', native.versions().operators);
const [best = ''] = operators;
if (operators.length > 0) leaveOutKernels(operators);
if (bf16Operators.length > 0) leaveOutKernels(bf16Operators, BF16_KERNELS);
const networks = new Networks();
test.after.always(() => networks.remove());

function present(t: ExecutionContext): boolean {
  if (best !== '') return true;
  sayLeftOut(t, 'Cutout has no operators for this processor');
  return false;
}

interface Sizes {
  readonly side: number;
  /** 3x3 convolutions of 64 channels at the full size. */
  readonly convolutions: number;
}

/** A network in floats, in bf16 and in both 8-bit forms: its specs without operators. */
function formsOf(builder: NetworkBuilder, output: string, side: number, title: string) {
  const { file, table } = builder.build(output, side, side);
  const written = (form: OnnxForm): NetworkSpec => {
    const name = path.join(networks.folder, `${form}-${side}-${title}.onnx`);
    writeFileSync(name, Buffer.concat([...compileOnnx(file, undefined, form, table).pieces]));
    return {
      name: form,
      path: name,
      width: side,
      height: side,
      mean: [128, 128, 128],
      std: [256, 256, 256],
      output: 'logit',
    };
  };
  return {
    standard: written('int8'),
    own: written('int8-operators'),
    /** Throws for a network that cannot be computed in bf16. */
    inBf16: () => ({ floats: written('fp32'), bf16: written('bf16') }),
  };
}

function networkOf({ side, convolutions }: Sizes) {
  const builder = new NetworkBuilder(3);
  let map = builder.conv('image', { channels: 64 });
  for (let i = 0; i < convolutions; i++) map = builder.conv(map, { channels: 64 });
  return formsOf(builder, builder.logit(map), side, `${convolutions}`);
}

function engineFor(t: ExecutionContext, changes: Partial<EngineOptions> = {}) {
  const engine = new native.Engine(engineOptions(changes));
  t.teardown(() => engine.close(0));
  return engine;
}

const alphaOf = (data: Uint8Array) => data.filter((_, i) => i % 4 === 3);

test('every kernel of this processor gives the same matte, and the standard operators a similar one', async (t) => {
  if (!present(t)) return;
  const { standard, own } = networkOf({ side: 64, convolutions: 2 });
  const mattes: Uint8Array[] = [];
  for (const spec of [standard, ...operators.map((each) => ({ ...own, operators: each }))]) {
    const engine = engineFor(t, { intraOpThreads: 2 });
    await engine.load(spec);
    const image = halves(64, 64);
    await engine.matte(1, image, planFor(spec.name, image));
    mattes.push(alphaOf(image.data));
  }
  const [wanted = new Uint8Array(), first = new Uint8Array(), ...others] = mattes;
  for (const each of others) t.deepEqual(each, first);
  t.true(first.every((alpha, i) => Math.abs(alpha - (wanted[i] ?? 0)) <= 2));
  t.true(new Set(first).size > 3);
});

test('several finer channels of different sizes leave the operator, and what mixes them stays in floats', async (t) => {
  if (!present(t)) return;
  const builder = new NetworkBuilder(5);
  const map = builder.conv('image', { channels: 32 });
  const small = builder.conv(builder.pool(map, true), { channels: 32 });
  const sides = [builder.logit(map), builder.resize(builder.logit(small), 2)];
  const mixed = builder.conv(builder.concat(...sides), { channels: 1, kernel: 1, relu: false, wide: true });
  const { standard, own } = formsOf(builder, mixed, 64, 'mixed');
  const { graph } = fromBinary(ModelProtoSchema, readFileSync(own.path));
  t.deepEqual(
    graph?.node.map(({ opType }) => opType),
    ['IntegerNetwork', 'Resize', 'Concat', 'Conv'],
  );
  const [wanted = new Uint8Array(), found = new Uint8Array()] = await Promise.all(
    [standard, { ...own, operators: best }].map(async (spec) => {
      const engine = engineFor(t, { intraOpThreads: 2 });
      await engine.load(spec);
      const image = halves(64, 64);
      await engine.matte(1, image, planFor(spec.name, image));
      return alphaOf(image.data);
    }),
  );
  t.true(found.every((alpha, i) => Math.abs(alpha - (wanted[i] ?? 0)) <= 2));
  t.true(new Set(found).size > 3);
});

test('an optimised copy opens with its operators and gives the same matte', async (t) => {
  if (!present(t)) return;
  const spec = { ...networkOf({ side: 32, convolutions: 1 }).own, operators: best };
  const engine = engineFor(t);
  const saveTo = path.join(networks.folder, 'saved.onnx');
  const mattes: Uint8Array[] = [];
  for (const each of [
    { ...spec, saveTo },
    { ...spec, path: saveTo },
  ]) {
    await engine.load(each);
    const image = halves(32, 32);
    await engine.matte(1, image, planFor(spec.name, image));
    mattes.push(image.data);
  }
  t.deepEqual(mattes[1], mattes[0]);
});

test("ONNX Runtime's operators use dot products of bytes, and without them are exact", async (t) => {
  const { standard } = networkOf({ side: 32, convolutions: 1 });
  const saveTo = path.join(networks.folder, 'standard.onnx');
  await engineFor(t).load({ ...standard, saveTo });
  const { graph } = fromBinary(ModelProtoSchema, readFileSync(saveTo));
  const convolutions = graph?.node.filter(({ opType }) => opType === 'QLinearConv') ?? [];
  const types = convolutions.map(
    ({ input }) => graph?.initializer.find(({ name }) => name === input[3])?.dataType,
  );
  t.true(types.length > 0);
  // Weights without a sign are for exact sums of 16-bit products, which take more than twice the time.
  const dotProducts = native
    .versions()
    .instructionSets.some((name) =>
      ['amx_int8', 'avx512_vnni', 'avx_vnni', 'i8mm', 'asimddp'].includes(name),
    );
  for (const type of types) t.is(type, dotProducts || process.arch !== 'x64' ? INT8 : UINT8);
});

test('a file with operators requires an instruction set, which this processor must have', async (t) => {
  if (!present(t)) return;
  const { own } = networkOf({ side: 32, convolutions: 1 });
  const engine = engineFor(t);
  await t.throwsAsync(engine.load(own), { code: 'ENGINE_MODEL' });
  await t.throwsAsync(engine.load({ ...own, operators: 'i8mm' }), {
    code: 'ENGINE_RUNTIME',
    message: /no operators for the instruction set 'i8mm'/,
  });
  t.throws(() => void engine.load({ ...own, operators: 1 } as unknown as NetworkSpec), {
    instanceOf: TypeError,
  });
});

test('a file whose program was modified is an error of the model', async (t) => {
  if (!present(t)) return;
  const { own } = networkOf({ side: 32, convolutions: 1 });
  const engine = engineFor(t);
  const file = path.join(networks.folder, 'changed.onnx');
  const changes: Record<string, (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>> = {
    steps: (bytes) => bytes.fill(0x7f, 80, 88),
    weights: (bytes) => bytes.slice(0, bytes.length / 2),
    biases: (bytes) => bytes.slice(0, 4),
    scales: (bytes) => bytes.slice(0, 4),
  };
  for (const [which, change] of Object.entries(changes)) {
    const model = fromBinary(ModelProtoSchema, readFileSync(own.path));
    const tensor = model.graph?.initializer.find(({ name }) => name === `integer/${which}`);
    if (!tensor) throw new Error(`no ${which}`);
    const [bytes, length] = [Uint8Array.from(tensor.rawData), tensor.rawData.length];
    tensor.rawData = change(bytes);
    tensor.dims = [((tensor.dims[0] ?? 0n) * BigInt(tensor.rawData.length)) / BigInt(length)];
    writeFileSync(file, toBinary(ModelProtoSchema, model));
    await t.throwsAsync(
      engine.load({ ...own, path: file, operators: best }),
      { code: 'ENGINE_MODEL', message: /low-precision part of the network is malformed/ },
      which,
    );
  }
});

test('concurrent runs and engines give the results of single ones', async (t) => {
  if (!present(t)) return;
  const spec = { ...networkOf({ side: 64, convolutions: 2 }).own, operators: best };
  const engines = [engineFor(t, { workers: 2 }), engineFor(t, { workers: 1, intraOpThreads: 2 })];
  await Promise.all(engines.map((engine) => engine.load(spec)));
  const runs = engines.flatMap((engine) =>
    [1, 2, 3, 4].map(async (id) => {
      const image = halves(64, 64);
      await engine.matte(id, image, planFor(spec.name, image));
      return image.data;
    }),
  );
  const [first, ...others] = await Promise.all(runs);
  for (const each of others) t.deepEqual(each, first);
});

test('every kernel for bf16 gives a matte like that of floats, and only for files in bf16', async (t) => {
  if (bf16Operators.length === 0) {
    sayLeftOut(t, 'this processor has no dot products of bf16');
    return;
  }
  const { inBf16, own } = networkOf({ side: 64, convolutions: 2 });
  const { floats, bf16 } = inBf16();
  const mattes: Uint8Array[] = [];
  for (const spec of [floats, ...bf16Operators.map((each) => ({ ...bf16, operators: each }))]) {
    const engine = engineFor(t, { intraOpThreads: 2 });
    await engine.load(spec);
    const image = halves(64, 64);
    await engine.matte(1, image, planFor(spec.name, image));
    mattes.push(alphaOf(image.data));
  }
  const [wanted = new Uint8Array(), ...others] = mattes;
  for (const each of others) t.true(each.every((alpha, i) => Math.abs(alpha - (wanted[i] ?? 0)) <= 4));
  t.true(new Set(wanted).size > 3);
  const engine = engineFor(t);
  await t.throwsAsync(engine.load(bf16), { code: 'ENGINE_MODEL' });
  await t.throwsAsync(engine.load({ ...own, operators: bf16Operators[0] ?? '' }), { code: 'ENGINE_MODEL' });
  if (best === '') return;
  await t.throwsAsync(engine.load({ ...bf16, operators: best }), { code: 'ENGINE_MODEL' });
});

for (const form of ['own', 'bf16'] as const) {
  test.serial(`a cancelled run ends early: ${form}`, async (t) => {
    const [kernel] = form === 'own' ? operators : bf16Operators;
    if (kernel === undefined) {
      sayLeftOut(t, 'Cutout has no operators for this processor');
      return;
    }
    t.timeout(120_000);
    const { own, inBf16 } = networkOf({ side: 768, convolutions: 24 });
    const spec = { ...(form === 'own' ? own : inBf16().bf16), operators: kernel };
    const engine = engineFor(t);
    const { warmUpMs } = await engine.load(spec);
    const image = halves(768, 768);
    const job = engine.matte(1, image, planFor(spec.name, image));
    job.catch(() => {});
    await until(engine, ({ running }) => running === 1);
    await sleep(warmUpMs / 3);
    const start = performance.now();
    t.true(engine.cancel(1));
    await t.throwsAsync(job, { code: 'ENGINE_CANCELLED' });
    const took = performance.now() - start;
    t.log(`cancelled in ${took.toFixed(1)} ms of a run of ${warmUpMs.toFixed(0)} ms`);
    t.true(took < Math.max(100, warmUpMs / 5), `${took} ms of ${warmUpMs} ms`);
  });
}
