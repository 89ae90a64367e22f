import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { gpuProgram } from '../../src/compiler/lowPrecision/gpu.ts';
import { floatReader, halfWidener } from '../../src/compiler/onnx/half.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import type { NetworkSpec } from '../../src/engine/types.ts';
import { Networks } from '../fixtures/engineSetup.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import type { Image } from './kernelsAddon.ts';

interface Plan {
  readonly width: number;
  readonly height: number;
}

/** When a device does its work: test/stress/device/host_device.h. */
type Lateness = 'atWait' | 'atOnce' | 'anyTime';

/** test/native/devices.cc. The devices are the host's. */
interface DevicesAddon {
  shareOfDevices(
    runtime: string,
    network: NetworkSpec,
    image: Image,
    plan: Plan,
    lateness: Lateness,
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

/** A network by Cutout's kernels, and one by ONNX Runtime. */
function bothNetworks(name: string): readonly NetworkSpec[] {
  const net = new NetworkBuilder(7);
  const map = net.conv('image', { channels: 16, stride: 2 });
  const logit = net.resize(net.conv(map, { channels: 1, relu: false }), 2);
  const { graph } = fromBinary(ModelProtoSchema, net.build(net.apply('Sigmoid', logit), 16, 16).file);
  if (!graph) throw new Error('the network has no graph');
  const onnx = networks.spec(name, small);
  const file = path.join(networks.folder, `${name}.gpu`);
  writeFileSync(file, Buffer.concat(gpuProgram(graph, floatReader(new Set(), halfWidener()))));
  return [{ ...onnx, path: file, gpuProgram: true, width: 16, height: 16 }, onnx];
}

// In series, because the faults are the process's.
test.serial('jobs are made on all devices, each of them on one, and are right whenever these work', (t) => {
  for (const network of bothNetworks('shared')) {
    for (const lateness of ['atWait', 'atOnce', 'anyTime'] as const) {
      t.deepEqual(
        addon.shareOfDevices(defaultRuntimePath(), network, image, plan, lateness),
        { same: 6, worked: [true, true], held: 0 },
        `${network.path}, ${lateness}`,
      );
    }
  }
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
    for (const network of bothNetworks(`fails-${fault}`)) {
      const found = addon.failEachCall(defaultRuntimePath(), network, image, plan, fault, false);
      t.is(found.wrong, '', network.path);
      t.true(found.moved > 40, `${found.moved} jobs were moved`);
      // The image is written once all of it has come back.
      t.is(found.givenUp, 0, 'jobs were given up');
    }
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
