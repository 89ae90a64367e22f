import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { pullNetwork } from '../../src/models/pull.ts';
import { type Deformable, deformableNetwork } from '../fixtures/deformable.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { sha256, workplace } from '../fixtures/networks.ts';
import { node, tinyNetwork } from '../fixtures/onnx.ts';
import { largestDifference, runNetwork } from './run.ts';

/** The file that preparation makes of a network for a CPU. */
async function prepared(t: ExecutionContext, file: Uint8Array, precision: 'fp32' | 'fp16'): Promise<string> {
  const place = await workplace(t);
  const facts = { bytes: file.length, sha256: sha256(file), confidence: 'confirmed', precision } as const;
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' }, file, {
    features: undefined,
    file: { ...facts, format: { name: 'onnx' } },
  });
  await pullNetwork(entry, place.options());
  return path.join(place.modelsDir, 'tiny', 'prepared.onnx');
}

const noise = (length: number) => Float32Array.from({ length }, (_, at) => Math.sin(at * 12.9898) * 0.5);

test('DeformConv of both operator sets and float formats is prepared and run, at any size', async (t) => {
  t.timeout(300_000);
  for (const [precision, operatorSet] of [
    ['fp32', 19],
    ['fp16', 19],
    ['fp16', 22],
  ] as const) {
    const network = (kind: Deformable['kind']) =>
      prepared(t, deformableNetwork({ precision, kind, operatorSet }), precision);
    const [still, plain] = [await network('still'), await network('plain')];
    for (const size of [
      { height: 64, width: 64 },
      { height: 64, width: 128 },
    ]) {
      const image = noise(3 * size.height * size.width);
      const [a, b] = [await runNetwork(still, image, 1, size), await runNetwork(plain, image, 1, size)];
      t.is(a.length, size.height * size.width);
      // Offsets of 0 and a mask of 1: the same sums as an ordinary convolution, in another order.
      t.true(largestDifference(a, b) < 1e-4, `${precision} ${operatorSet}`);
    }
  }
});

test('offsets of DeformConv move what it reads', async (t) => {
  t.timeout(300_000);
  const size = { height: 32, width: 32 };
  const image = noise(3 * size.height * size.width);
  const network = (kind: Deformable['kind']) =>
    prepared(t, deformableNetwork({ precision: 'fp32', kind }), 'fp32');
  const [still, shifted] = [
    await runNetwork(await network('still'), image, 1, size),
    await runNetwork(await network('shifted'), image, 1, size),
  ];
  t.true(largestDifference(still, shifted) > 0.01);
  // One pixel of the layer at half the size is two of the image; away from the borders nothing else changes.
  let worst = 0;
  for (let y = 8; y < 24; y++)
    for (let x = 8; x < 22; x++) {
      const at = y * size.width + x;
      worst = Math.max(worst, Math.abs((shifted[at] ?? 0) - (still[at + 2] ?? 0)));
    }
  t.true(worst < 1e-4, `${worst}`);
});

function openEngine(t: ExecutionContext): Engine {
  const engine = createEngine(loadAddon(), engineOptions({ queueLimit: 1, idleReleaseMs: 0 }));
  t.teardown(() => engine.close(0));
  return engine;
}

const spec = (file: string) =>
  ({
    name: 'tiny',
    path: file,
    width: 64,
    height: 64,
    mean: [128, 128, 128],
    std: [256, 256, 256],
    output: 'logit',
  }) as const;

test('the engine runs a network with DeformConv', async (t) => {
  const engine = openEngine(t);
  const file = await prepared(t, deformableNetwork({ precision: 'fp16', kind: 'still' }), 'fp16');
  await engine.load(spec(file));
  const pixels = { data: new Uint8Array(64 * 64 * 4).map((_, at) => (at * 37) % 251), width: 64, height: 64 };
  const plan = { network: 'tiny', hiddenColour: 'keep', width: 64, height: 64 } as const;
  const { runs } = await engine.matte(pixels, plan);
  t.is(runs, 1);
});

test('an operator that ONNX Runtime lacks is named in the error', async (t) => {
  const engine = openEngine(t);
  const model = fromBinary(ModelProtoSchema, tinyNetwork('fp32'));
  model.graph?.node.push(node('NoSuchOperator', ['alpha'], ['beta']));
  const output = model.graph?.output[0];
  if (output) output.name = 'beta';
  const file = await prepared(t, toBinary(ModelProtoSchema, model), 'fp32');
  await t.throwsAsync(engine.load({ ...spec(file), width: 8, height: 8 }), {
    code: 'ENGINE_MODEL',
    message: /NoSuchOperator/,
  });
  // DeformConv is not in the operator sets before 19.
  const old = fromBinary(ModelProtoSchema, deformableNetwork({ precision: 'fp32', kind: 'still' }));
  for (const each of old.opsetImport) each.version = 18n;
  await writeFile(file, toBinary(ModelProtoSchema, old));
  await t.throwsAsync(engine.load(spec(file)), { code: 'ENGINE_MODEL', message: /DeformConv/ });
});
