import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { matteDifference } from '../../bench/lib/matteDifference.ts';
import type { Form } from '../../src/compiler/form.ts';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { ensureNetwork } from '../../src/models/ensure.ts';
import { networkFiles } from '../../src/models/layout.ts';
import { preparedFacts } from '../../src/models/locate.ts';
import type { Manifest } from '../../src/models/manifest.ts';
import { verifyPrepared, verifySource } from '../../src/models/verify.ts';
import { largestDifference, runNetwork } from '../compiler/run.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { Recorder } from '../fixtures/networks.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

/**
 * Networks with an 8-bit form, and how far it may be from floats on average. Other than the default one they are only
 * where somebody has pulled them.
 */
const NETWORKS = { isnet: 0.012, u2net: 0.02 };

type Colour = (x: number, y: number) => readonly [number, number, number];

/** A shaded ball with a soft rim before bricks; an arrow-like figure on a slope; stripes without a subject. */
const DRAWN: readonly Colour[] = [
  (x, y) => {
    const distance = Math.hypot(x - 0.48, y - 0.55);
    const cover = Math.min(1, Math.max(0, (0.27 - distance) * 200));
    const light = 230 - 700 * Math.hypot(x - 0.4, y - 0.45) ** 2;
    const brick = Math.sin(y * 90) > 0.93 || Math.sin(x * 50 + Math.floor(y * 14.3) * 3) > 0.97 ? 190 : 120;
    const mix = (a: number, b: number) => a * cover + b * (1 - cover);
    return [mix(light, brick), mix(light * 0.35, brick * 0.8), mix(40, brick * 0.7)];
  },
  (x, y) => {
    const inside = Math.abs(x - 0.5) < (0.85 - y) * 0.4 && y > 0.15;
    return inside
      ? [40 + 60 * y, 70, 160 - 50 * x]
      : [150 + 60 * y, 170 + 40 * y, 120 + 20 * Math.sin(x * 40)];
  },
  (x, y) => {
    const wave = 128 + 90 * Math.sin(40 * (x + y));
    return [wave, 255 - wave, 100 + 50 * Math.sin(25 * y)];
  },
];

/** The drawn images as the network reads them, one after another. */
function drawn({ width, height, mean, std }: Manifest['input']): Float32Array {
  const plane = width * height;
  const values = new Float32Array(3 * plane * DRAWN.length);
  for (const [image, colour] of DRAWN.entries()) {
    for (let at = 0; at < plane; at++) {
      const rgb = colour((at % width) / width, Math.floor(at / width) / height);
      for (let c = 0; c < 3; c++) {
        const value = Math.min(255, Math.max(0, rgb[c] ?? 0));
        values[(3 * image + c) * plane + at] = (value - (mean[c] ?? 0)) / (std[c] ?? 1);
      }
    }
  }
  return values;
}

function present(t: ExecutionContext, name: string): boolean {
  if (existsSync(path.join(modelsDir, name, 'source.onnx'))) return true;
  sayLeftOut(t, `the network ${name} is not in ${modelsDir}`);
  return false;
}

/** A network prepared in this form, if necessary now: a machine prepares only the form it uses. */
const prepared = (name: string, form: Form) =>
  ensureNetwork(name, { modelsDir, pull: false, device: 'cpu', form, observer: new Recorder() });

for (const [name, allowed] of Object.entries(NETWORKS)) {
  test(`${name} as pulled and as prepared has the expected checksums`, async (t) => {
    if (!present(t, name)) return;
    t.timeout(180_000);
    const entry = await findNetwork(installedCatalogue(), name);
    const { manifest } = entry;
    t.is(await verifySource(networkFiles(modelsDir, manifest), manifest), 'ok');
    for (const form of ['fp32', 'int8', 'int8-operators'] as const) {
      await prepared(name, form);
      t.is(await verifyPrepared(networkFiles(modelsDir, manifest, form), entry, form), 'ok');
    }
    const place = { modelsDir, device: 'cpu', form: 'int8-operators' } as const;
    t.true((await preparedFacts(name, place)).operators);
  });

  test.serial(
    `${name}: prepared and published agree within 2/255 everywhere, 8 bits and floats on average; a batch of 3 equals three runs`,
    async (t) => {
      t.timeout(600_000);
      if (!present(t, name)) return;
      const { input } = (await findNetwork(installedCatalogue(), name)).manifest;
      const inputs = drawn(input);
      const float = await prepared(name, 'fp32');
      const published = await runNetwork(path.join(modelsDir, name, 'source.onnx'), inputs, 1, input);
      const single = await runNetwork(float.path, inputs, 1, input);
      const batch = await runNetwork(float.path, inputs, 3, input);
      const worst = largestDifference(published, single) * 255;
      const apart = largestDifference(single, batch) * 255;
      t.log(`published - prepared: ${worst.toFixed(3)}/255; single - batch: ${apart.toFixed(5)}/255`);
      t.true(worst <= 2);
      // Blocking may differ with the batch; a rounded alpha must not.
      t.true(apart <= 0.01);
      // The comparison is meaningful: the first image has both subject and background.
      const plane = input.width * input.height;
      const first = single.subarray(0, plane);
      t.true(first.some((value) => value > 0.9));
      t.true(first.some((value) => value < 0.1));

      const eight = await runNetwork((await prepared(name, 'int8')).path, inputs, 1, input);
      for (const [at, title] of ['ball', 'arrow', 'stripes'].entries()) {
        const [from, to] = [at * plane, (at + 1) * plane];
        const { mean, edge } = matteDifference(single.subarray(from, to), eight.subarray(from, to));
        t.log(
          `${title}: 8 bits ${mean.toFixed(4)} from floats, ${edge.toFixed(4)} where the matte is between`,
        );
        t.true(mean <= allowed, title);
        t.true(mean > 0, title);
      }
    },
  );
}
