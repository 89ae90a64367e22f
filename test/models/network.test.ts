import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { matteDifference } from '../../bench/lib/matteDifference.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { ensureNetwork } from '../../src/models/ensure.ts';
import { type Form, networkFiles } from '../../src/models/layout.ts';
import { dotProductOf } from '../../src/models/preparedForm.ts';
import { verifyPrepared, verifySource } from '../../src/models/verify.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { Recorder } from '../fixtures/networks.ts';
import { largestDifference, runNetwork } from './run.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

const SIDE = 1024;
const PLANE = SIDE * SIDE;

/** Values (v - 128) / 256 of [3,H,W] for an image given by its colours at each point. */
function image(colour: (x: number, y: number) => readonly [number, number, number]): Float32Array {
  const values = new Float32Array(3 * PLANE);
  for (let at = 0; at < PLANE; at++) {
    const rgb = colour((at % SIDE) / SIDE, Math.floor(at / SIDE) / SIDE);
    for (let channel = 0; channel < 3; channel++) {
      values[channel * PLANE + at] = (Math.min(255, Math.max(0, rgb[channel] ?? 0)) - 128) / 256;
    }
  }
  return values;
}

/** A shaded ball with a soft rim before bricks; an arrow-like figure on a slope; stripes without a subject. */
const images = [
  image((x, y) => {
    const distance = Math.hypot(x - 0.48, y - 0.55);
    const cover = Math.min(1, Math.max(0, (0.27 - distance) * 200));
    const light = 230 - 700 * Math.hypot(x - 0.4, y - 0.45) ** 2;
    const brick = Math.sin(y * 90) > 0.93 || Math.sin(x * 50 + Math.floor(y * 14.3) * 3) > 0.97 ? 190 : 120;
    const mix = (a: number, b: number) => a * cover + b * (1 - cover);
    return [mix(light, brick), mix(light * 0.35, brick * 0.8), mix(40, brick * 0.7)];
  }),
  image((x, y) => {
    const inside = Math.abs(x - 0.5) < (0.85 - y) * 0.4 && y > 0.15;
    return inside
      ? [40 + 60 * y, 70, 160 - 50 * x]
      : [150 + 60 * y, 170 + 40 * y, 120 + 20 * Math.sin(x * 40)];
  }),
  image((x, y) => {
    const wave = 128 + 90 * Math.sin(40 * (x + y));
    return [wave, 255 - wave, 100 + 50 * Math.sin(25 * y)];
  }),
];

const joined = () => {
  const all = new Float32Array(3 * PLANE * images.length);
  for (const [at, each] of images.entries()) all.set(each, at * 3 * PLANE);
  return all;
};

function present(t: ExecutionContext): boolean {
  if (existsSync(path.join(modelsDir, 'isnet', 'source.onnx'))) return true;
  sayLeftOut(t, `the network isnet is not in ${modelsDir}`);
  return false;
}

/** The default network prepared in this form, if necessary now: a machine prepares only the form it uses. */
const prepared = (form: Form) =>
  ensureNetwork('isnet', { modelsDir, pull: false, device: 'cpu', form, observer: new Recorder() });

test('the default network as pulled and as prepared has the expected checksums', async (t) => {
  if (!present(t)) return;
  t.timeout(180_000);
  const entry = await findNetwork(installedCatalogue(), 'isnet');
  const { manifest } = entry;
  t.is(await verifySource(networkFiles(modelsDir, manifest), manifest), 'ok');
  for (const form of ['fp32', 'int8', 'int8-operators'] as const) {
    await prepared(form);
    t.is(await verifyPrepared(networkFiles(modelsDir, manifest, form), entry, form), 'ok');
  }
});

test.serial(
  'prepared and published agree within 2/255 everywhere, 8 bits and floats on average; a batch of 3 equals three runs',
  async (t) => {
    t.timeout(600_000);
    if (!present(t)) return;
    const inputs = joined();
    const float = await prepared('fp32');
    const published = await runNetwork(path.join(modelsDir, 'isnet', 'source.onnx'), inputs, 1);
    const single = await runNetwork(float.path, inputs, 1);
    const batch = await runNetwork(float.path, inputs, 3);
    const worst = largestDifference(published, single) * 255;
    const apart = largestDifference(single, batch) * 255;
    t.log(`published - prepared: ${worst.toFixed(3)}/255; single - batch: ${apart.toFixed(5)}/255`);
    t.true(worst <= 2);
    // Blocking may differ with the batch; a rounded alpha must not.
    t.true(apart <= 0.01);
    // The comparison is meaningful: the first image has both subject and background.
    const first = single.subarray(0, PLANE);
    t.true(first.some((value) => value > 0.9));
    t.true(first.some((value) => value < 0.1));

    if (dotProductOf(loadAddon().versions().instructionSets) === undefined) return;
    const eight = await runNetwork((await prepared('int8')).path, inputs, 1);
    for (const [at, name] of ['ball', 'arrow', 'stripes'].entries()) {
      const [from, to] = [at * PLANE, (at + 1) * PLANE];
      const { mean, edge } = matteDifference(single.subarray(from, to), eight.subarray(from, to));
      t.log(`${name}: 8 bits ${mean.toFixed(4)} from floats, ${edge.toFixed(4)} where the matte is between`);
      t.true(mean <= 0.012, name);
      t.true(mean > 0, name);
    }
  },
);
