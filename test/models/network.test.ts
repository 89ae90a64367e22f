import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { networkFiles } from '../../src/models/layout.ts';
import { verifyPrepared, verifySource } from '../../src/models/verify.ts';
import { largestDifference, runNetwork } from './run.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

const SIDE = 1024;
const PLANE = SIDE * SIDE;

/** Values (v - 128) / 256 of [3,H,W] for a picture given by its colours at each point. */
function picture(colour: (x: number, y: number) => readonly [number, number, number]): Float32Array {
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
const pictures = [
  picture((x, y) => {
    const distance = Math.hypot(x - 0.48, y - 0.55);
    const cover = Math.min(1, Math.max(0, (0.27 - distance) * 200));
    const light = 230 - 700 * Math.hypot(x - 0.4, y - 0.45) ** 2;
    const brick = Math.sin(y * 90) > 0.93 || Math.sin(x * 50 + Math.floor(y * 14.3) * 3) > 0.97 ? 190 : 120;
    const mix = (a: number, b: number) => a * cover + b * (1 - cover);
    return [mix(light, brick), mix(light * 0.35, brick * 0.8), mix(40, brick * 0.7)];
  }),
  picture((x, y) => {
    const inside = Math.abs(x - 0.5) < (0.85 - y) * 0.4 && y > 0.15;
    return inside
      ? [40 + 60 * y, 70, 160 - 50 * x]
      : [150 + 60 * y, 170 + 40 * y, 120 + 20 * Math.sin(x * 40)];
  }),
  picture((x, y) => {
    const wave = 128 + 90 * Math.sin(40 * (x + y));
    return [wave, 255 - wave, 100 + 50 * Math.sin(25 * y)];
  }),
];

const joined = () => {
  const all = new Float32Array(3 * PLANE * pictures.length);
  for (const [at, each] of pictures.entries()) all.set(each, at * 3 * PLANE);
  return all;
};

function present(t: ExecutionContext): boolean {
  if (existsSync(path.join(modelsDir, 'isnet', 'prepared.onnx'))) return true;
  t.log(`skipped: the network isnet is not in ${modelsDir}`);
  t.pass();
  return false;
}

test('the default network as pulled and as prepared has the right sums', async (t) => {
  if (!present(t)) return;
  const entry = await findNetwork(installedCatalogue(), 'isnet');
  const { manifest } = entry;
  const files = networkFiles(modelsDir, manifest);
  t.is(await verifySource(files, manifest), 'ok');
  t.is(await verifyPrepared(files, entry, 'fp32'), 'ok');
});

test.serial(
  'prepared and published agree within 2/255 everywhere; a batch of 3 equals three runs',
  async (t) => {
    t.timeout(180_000);
    if (!present(t)) return;
    const folder = path.join(modelsDir, 'isnet');
    const prepared = path.join(folder, 'prepared.onnx');
    const inputs = joined();
    const published = await runNetwork(path.join(folder, 'source.onnx'), inputs, 1);
    const single = await runNetwork(prepared, inputs, 1);
    const batch = await runNetwork(prepared, inputs, 3);
    const worst = largestDifference(published, single) * 255;
    const apart = largestDifference(single, batch) * 255;
    t.log(`published - prepared: ${worst.toFixed(3)}/255; single - batch: ${apart.toFixed(5)}/255`);
    t.true(worst <= 2);
    // Blocking may differ with the batch; a rounded alpha must not.
    t.true(apart <= 0.01);
    // The comparison means something: the first picture has both subject and background.
    const first = single.subarray(0, PLANE);
    t.true(first.some((value) => value > 0.9));
    t.true(first.some((value) => value < 0.1));
  },
);
