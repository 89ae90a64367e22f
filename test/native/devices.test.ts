import { createRequire } from 'node:module';
import test from 'ava';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import type { NetworkSpec } from '../../src/engine/types.ts';
import { Networks } from '../fixtures/engineSetup.ts';
import type { Image } from './kernelsAddon.ts';

interface Plan {
  readonly width: number;
  readonly height: number;
}

/** test/native/devices.cc. The devices are the host's. */
interface DevicesAddon {
  shareOfDevices(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: Plan,
  ): { readonly same: number; readonly worked: readonly boolean[]; readonly held: number };
  slotsOfDevices(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: Plan,
  ): { readonly inSeries: readonly number[]; readonly atOnce: readonly number[] };
  failAmongJobs(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: Plan,
    calls: number,
  ): { readonly wrong: string; readonly losses: number };
  failEachCall(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: Plan,
    fault: 'once' | 'lost',
    all: boolean,
  ): { readonly wrong: string; readonly moved: number; readonly givenUp: number };
}

const addon = createRequire(import.meta.url)('../../../native/Release/cutout_test.node') as DevicesAddon;
const networks = new Networks();
test.after.always(() => networks.remove());

const image: Image = {
  data: Uint8Array.from({ length: 50 * 40 * 4 }, (_, i) =>
    i % 4 === 3 ? 255 : (Math.floor(i / 200) * 3 + i * 7) % 256,
  ),
  width: 50,
  height: 40,
  stride: 200,
};
const plan = { width: 40, height: 30 };
/** Small, because hundreds of jobs are made. */
const small = { batch: true, width: 32, height: 32 };

// In series, because the faults are the process's.
test.serial('jobs are made on all devices, each of them on one, and are those of the CPU', (t) => {
  const network = networks.spec('shared', { ...small, convolutions: 2 });
  t.deepEqual(addon.shareOfDevices(defaultRuntimePath(), network, image, plan), {
    same: 6,
    worked: [true, true],
    held: 0,
  });
});

test.serial('a device holds as many slots of a network as jobs were on it at a time', (t) => {
  const network = networks.spec('slots', small);
  const { inSeries, atOnce } = addon.slotsOfDevices(defaultRuntimePath(), network, image, plan);
  t.deepEqual(inSeries, [0, 0], 'the first slot is open from the beginning');
  // Six jobs on two devices: at most three on each.
  for (const slots of atOnce) t.true(slots >= 0 && slots <= 2 && Number.isInteger(slots), `${atOnce}`);
});

test.serial('a device that fails while jobs open slots on it: they are made on the other one', (t) => {
  const network = networks.spec('among', small);
  const calls = 24;
  t.deepEqual(addon.failAmongJobs(defaultRuntimePath(), network, image, plan, calls), {
    wrong: '',
    losses: calls,
  });
});

for (const fault of ['once', 'lost'] as const) {
  test.serial(`a device that fails at any call (${fault}): the job is made on another one`, (t) => {
    const network = networks.spec(`fails-${fault}`, small);
    const found = addon.failEachCall(defaultRuntimePath(), network, image, plan, fault, false);
    t.is(found.wrong, '');
    t.true(found.moved > 40, `${found.moved} jobs were moved`);
    // The image is written once all of it has come back.
    t.is(found.givenUp, 0, 'jobs were given up');
  });
}

test.serial(
  'devices that all fail: jobs end with the reason, and are made again once a device works',
  (t) => {
    const network = networks.spec('none', small);
    const found = addon.failEachCall(defaultRuntimePath(), network, image, plan, 'lost', true);
    t.is(found.wrong, '');
    t.true(found.givenUp > 40, `${found.givenUp} jobs were given up`);
  },
);
