import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import test from 'ava';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import type { NetworkSpec } from '../../src/engine/types.ts';
import { Networks } from '../fixtures/engineSetup.ts';
import type { Image, NativeMask } from './kernelsAddon.ts';

interface Made {
  /** Kernels of the backend in the order of their calls, each with the width of what it works on. */
  readonly kernels: readonly string[];
  /** Of the network. */
  readonly runs: number;
  readonly uncertainty: number;
  /** 0: none, 1: declined, 2: taken. */
  readonly secondLook: number;
  readonly pixels: Buffer;
}

interface StagesPlan {
  readonly width: number;
  readonly height: number;
  readonly input?: { readonly width: number; readonly height: number };
  readonly mask?: NativeMask;
}

/** test/native/stages.cc. */
interface StagesAddon {
  /** 'cpu', 'far' (its tensors are on a device), 'device' (the host as one) or the name of a kernel that is wrong. */
  contractFaults(backend: string, threads: number): readonly string[];
  readDeviceTensor(): string;
  stagesOf(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: StagesPlan,
    backend: 'cpu' | 'device',
    second?: NetworkSpec,
  ): { readonly first: Made; readonly second: Made };
}

const addon = createRequire(import.meta.url)('../../../native/Release/cutout_test.node') as StagesAddon;
const networks = new Networks();
test.after.always(() => networks.remove());

test('the CPU fulfils the contract of backends, with any number of threads', (t) => {
  for (const threads of [0, 1, 3]) t.deepEqual(addon.contractFaults('cpu', threads), []);
});

test('a device fulfils the contract of backends, with any number of threads', (t) => {
  for (const threads of [0, 1, 3]) t.deepEqual(addon.contractFaults('device', threads), []);
});

test('the contract can be fulfilled by a backend whose tensors are on a device', (t) => {
  t.deepEqual(addon.contractFaults('far', 1), []);
});

for (const kernel of [
  'upload',
  'fill_input',
  'to_probability',
  'uncertainty',
  'filter_components',
  'reduce',
  'solve',
]) {
  test(`a backend whose ${kernel} is wrong does not fulfil the contract`, (t) => {
    const faults = addon.contractFaults(kernel, 1);
    t.true(
      faults.some((fault) => fault.startsWith(`${kernel}: `)),
      faults.join('\n'),
    );
  });
}

test('a tensor on a device is not read as memory of this process', (t) => {
  t.is(addon.readDeviceTensor(), 'The tensor does not lie on the host.');
});

/** A disc in the middle, of this brightness on black. */
function disc(width: number, height: number, brightness = 255): Image {
  const data = new Uint8Array(width * height * 4);
  for (let i = 0; i < width * height; i++) {
    const inside = Math.hypot((i % width) - width / 2, Math.floor(i / width) - height / 2) < height / 3;
    data.set([...Array<number>(3).fill(inside ? brightness : 0), 255], i * 4);
  }
  return { data, width, height, stride: width * 4 };
}

/** The kernels of an answer by a network with an input of this width. */
const answered = (width: number) => [`fillInput ${width}`, `toProbability ${width}`];

function stagesOf(network: NetworkSpec, image: Image, plan: StagesPlan, second?: NetworkSpec) {
  const made = addon.stagesOf(defaultRuntimePath(), network, image, plan, 'cpu', second);
  // The host as a device computes the same.
  assert.deepEqual(addon.stagesOf(defaultRuntimePath(), network, image, plan, 'device', second), made);
  return made;
}

test('a matte is made by prepare, infer, solve and write', (t) => {
  const network = networks.spec('plain');
  const { first } = stagesOf(network, disc(120, 90), { width: 120, height: 90 });
  t.deepEqual(first.kernels, [...answered(64), 'filterComponents 64', 'solve 64']);
  t.is(first.runs, 1);
  t.true(first.uncertainty > 0 && first.uncertainty < 0.02, String(first.uncertainty));
  const reduced = stagesOf(network, disc(120, 90), { width: 100, height: 75 }).first;
  t.deepEqual(reduced.kernels.slice(-2), ['reduce 100', 'solve 64']);
});

test('a drawing on a flat background gets its coloured inside back, unless a mask says what the subject is', (t) => {
  const network = networks.spec('outline', { width: 256, height: 256 });
  // A white outline on black around blue, which the network takes for background.
  const plan = { width: 480, height: 360 };
  const image = disc(plan.width, plan.height);
  for (let i = 0; i < plan.width * plan.height; i++) {
    const inside = Math.hypot((i % plan.width) - 240, Math.floor(i / plan.width) - 180) < 80;
    if (inside) image.data.set([0, 0, 120], i * 4);
  }
  const middle = (180 * plan.width + 240) * 4;
  const found = stagesOf(network, image, plan).first;
  t.deepEqual([...found.pixels.subarray(middle, middle + 4)], [0, 0, 120, 255]);
  const undecided = { data: new Uint8Array(4).fill(128), width: 2, height: 2 };
  t.is(stagesOf(network, image, { ...plan, mask: undecided }).first.pixels[middle + 3], 0);
  image.data[4] = 13;
  t.is(stagesOf(network, image, plan).first.pixels[middle + 3], 0);
});

test('an answer at a smaller size that is in doubt passes prepare and infer again; a sure one does not', (t) => {
  const network = networks.spec('free', { free: true });
  const plan = { width: 40, height: 30, input: { width: 32, height: 32 } };
  const sure = stagesOf(network, disc(120, 90), plan).first;
  t.deepEqual(sure.kernels, [...answered(32), 'filterComponents 32', 'reduce 40', 'solve 32']);
  t.is(sure.runs, 1);
  // The middle of the logits.
  const doubtful = stagesOf(network, disc(120, 90, 128), plan).first;
  t.deepEqual(doubtful.kernels, [
    ...answered(32),
    ...answered(64),
    'filterComponents 64',
    'reduce 40',
    'solve 64',
  ]);
  t.is(doubtful.runs, 2);
});

const [none, declined, taken] = [0, 1, 2];

test('a second network looks where the first is in doubt, and the surer answer goes on as a whole', (t) => {
  const network = networks.spec('first', { free: true });
  const plan = { width: 120, height: 90 };
  const surer = networks.spec('surer', { width: 48, height: 48, bias: 5 });
  const sure = stagesOf(network, disc(120, 90), plan, surer).first;
  t.deepEqual(sure.kernels, [...answered(64), 'filterComponents 64', 'solve 64']);
  t.is(sure.secondLook, none);

  const image = disc(120, 90, 128);
  const changed = stagesOf(network, image, plan, surer).first;
  t.deepEqual(changed.kernels, [...answered(64), ...answered(48), 'filterComponents 48', 'solve 48']);
  t.is(changed.secondLook, taken);
  t.is(changed.runs, 1);
  const alone = stagesOf(surer, image, plan).first;
  t.deepEqual(changed.pixels, alone.pixels);
  const unsureFirst = stagesOf(network, image, plan).first.uncertainty;
  t.is(changed.uncertainty, Math.sqrt(unsureFirst * alone.uncertainty));

  // Exactly one half: as far from certain as can be.
  const unsure = networks.spec('unsure', { width: 48, height: 48, bias: (-0.5 / 127.5) * 40 });
  const stays = stagesOf(network, image, plan, unsure).first;
  t.deepEqual(stays.kernels, [...answered(64), ...answered(48), 'filterComponents 64', 'solve 64']);
  t.is(stays.secondLook, declined);
  t.deepEqual(stays.pixels, stagesOf(network, image, plan).first.pixels);
});

test('a second network is asked once, and not where the output is kept', (t) => {
  const network = networks.spec('first', { free: true });
  const second = networks.spec('second', { width: 48, height: 48, bias: 5 });
  const image = disc(120, 90, 128);
  const plan = { width: 120, height: 90 };
  const again = stagesOf(network, image, { ...plan, input: { width: 32, height: 32 } }, second).first;
  t.deepEqual(again.kernels, [
    ...answered(32),
    ...answered(64),
    ...answered(48),
    'filterComponents 48',
    'solve 48',
  ]);
  const kept = stagesOf(network, image, { ...plan, mask: mask(4) }, second).second;
  t.deepEqual(kept.kernels, ['toProbability 48', 'filterComponents 48', 'solve 48']);
});

const mask = (from: number): NativeMask => ({
  data: Uint8Array.from({ length: 60 * 45 }, (_, i) =>
    i % 60 >= from && i % 60 < 60 - from && i > 60 * 8 && i < 60 * 37 ? 255 : 0,
  ),
  width: 60,
  height: 45,
});

test('a kept answer is used again without filling the input of the network where nobody reads that', (t) => {
  const network = networks.spec('kept');
  const again = ['toProbability 64', 'filterComponents 64', 'solve 64'];
  const image = disc(120, 90);
  // The input is the guide of refinement where it is not larger than the result.
  const large = stagesOf(network, image, { width: 120, height: 90, mask: mask(4) });
  t.deepEqual(large.first.kernels, ['fillInput 64', ...again]);
  t.deepEqual(large.second.kernels, ['fillInput 64', ...again]);
  const preview = stagesOf(network, disc(60, 45), { width: 60, height: 45, mask: mask(4) });
  t.deepEqual(preview.second.kernels, again);
  for (const { first, second } of [large, preview]) {
    t.is(second.runs, 0);
    t.deepEqual(second.pixels, first.pixels);
  }
});
