import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { makeSixteenBitNetwork } from '../../src/compiler/lowPrecision/bf16.ts';
import { checkOperations, gpuFile, gpuProgram } from '../../src/compiler/lowPrecision/gpu.ts';
import { packSixteen } from '../../src/compiler/lowPrecision/pack.ts';
import { floatReader, halfWidener } from '../../src/compiler/onnx/half.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { random } from '../fixtures/random.ts';

/** native/core/status.h */
const MODEL = 5;
const DEVICE = 9;

interface GpuTestAddon {
  run(
    runtimePath: string,
    file: string,
    width: number,
    height: number,
    bind: boolean,
    inputs: readonly Float32Array[],
  ): readonly Float32Array[];
  gpuNetwork(
    file: string,
    width: number,
    height: number,
    largestBatch: number,
    inputs: readonly Float32Array[],
  ): {
    readonly code: number;
    readonly message: string;
    readonly sizes: readonly number[];
    readonly planes: readonly Float32Array[];
    readonly held: number;
  };
  gpuNetworkFaults(
    file: string,
    width: number,
    height: number,
    input: Float32Array,
  ): { readonly calls: number; readonly codes: readonly number[]; readonly held: number };
}

const addon: GpuTestAddon = createRequire(import.meta.url)(
  path.join(root, 'build', 'native', 'Release', 'cutout_gpu_test.node'),
);

const folder = mkdtempSync(path.join(tmpdir(), 'cutout-gpu-network-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** A network with every operation that a program for a GPU may have, enlarged at its end. */
function network(width: number, height: number): Uint8Array {
  const net = new NetworkBuilder(7);
  // A sum of two convolutions of the image is part of neither.
  const stem = net.add(
    net.conv('image', { channels: 32, stride: 2 }),
    net.conv('image', { channels: 32, stride: 2 }),
  );
  const deep = net.conv(net.pool(stem, true), { channels: 48, dilation: 2 });
  const wide = net.conv(net.conv(deep, { channels: 64, kernel: 1 }), { channels: 32 });
  const joined = net.concat(net.resize(wide, 2), stem);
  // Joined with the convolution before it, and not: its other reader needs the convolution alone.
  const sum = net.add(net.conv(joined, { channels: 32 }), stem);
  const side = net.conv(sum, { channels: 16, dilation: 4 });
  const both = net.add(net.conv(side, { channels: 16 }), side);
  const logit = net.resize(net.conv(net.concat(both, side), { channels: 1, relu: false }), 2);
  return net.build(net.apply('Sigmoid', logit), width, height).file;
}

function program(file: Uint8Array): Uint8Array {
  const { graph } = fromBinary(ModelProtoSchema, file);
  if (!graph) throw new Error('the network has no graph');
  return Buffer.concat(gpuProgram(graph, floatReader(new Set(), halfWidener())));
}

function write(name: string, bytes: Uint8Array): string {
  const file = path.join(folder, name);
  writeFileSync(file, bytes);
  return file;
}

function images(count: number, size: number): Float32Array[] {
  const next = random(3);
  return Array.from({ length: count }, () => Float32Array.from({ length: size }, () => next() - 0.5));
}

const sigmoid = (value: number) => 1 / (1 + Math.exp(-value));

test('a program for a GPU gives what ONNX Runtime gives, in batches of every number of images', (t) => {
  const [width, height] = [24, 16];
  const file = network(width, height);
  const onnx = write('net.onnx', file);
  const gpu = write('net.gpu', program(file));
  const inputs = images(3, 3 * width * height);
  const expected = addon.run(defaultRuntimePath(), onnx, width, height, false, inputs);
  for (const count of [1, 2, 3]) {
    const { code, message, sizes, planes, held } = addon.gpuNetwork(
      gpu,
      width,
      height,
      3,
      inputs.slice(0, count),
    );
    t.is(code, 0, message);
    t.deepEqual(sizes, [1, 2, 3]);
    t.is(held, 0);
    for (const [i, plane] of planes.entries()) {
      t.is(plane.length, width * height);
      const differences = plane.map((logit, at) =>
        Math.abs(sigmoid(logit) - (expected[i]?.[at] ?? Number.NaN)),
      );
      // float16 of maps and weights; the outputs are spread over 0 to 1.
      t.true(Math.max(...differences) < 0.01, `image ${i} of ${count}: ${Math.max(...differences)}`);
    }
  }
  const spread = [...(expected[0] ?? [])];
  t.true(Math.max(...spread) - Math.min(...spread) > 0.2);
});

/** The end of U²-Net: planes of maps of several sizes, enlarged, and weighted by the last convolution. */
function weighted(net: NetworkBuilder, outputs = 1): string {
  const large = net.conv('image', { channels: 32 });
  const small = net.conv(net.pool(large, true), { channels: 16 });
  const least = net.conv(net.pool(net.pool(small, true), true), { channels: 32 });
  const plane = (map: string) => net.conv(map, { channels: 1, relu: false });
  const planes = net.concat(plane(large), net.resize(plane(small), 2), net.resize(plane(least), 8));
  return net.apply('Sigmoid', net.conv(planes, { channels: outputs, kernel: 1, relu: false }));
}

test('planes that the last convolution weights, as those of U²-Net', (t) => {
  const [width, height] = [48, 32];
  const net = new NetworkBuilder(9);
  const { file } = net.build(weighted(net), width, height);
  const [input = new Float32Array()] = images(1, 3 * width * height);
  const onnx = write('weighted.onnx', file);
  const [expected = new Float32Array()] = addon.run(defaultRuntimePath(), onnx, width, height, false, [
    input,
  ]);
  const gpu = write('weighted.gpu', program(file));
  const { code, message, planes } = addon.gpuNetwork(gpu, width, height, 1, [input]);
  t.is(code, 0, message);
  const differences = expected.map((value, at) => Math.abs(sigmoid(planes[0]?.[at] ?? Number.NaN) - value));
  t.true(Math.max(...differences) < 2e-3, `${Math.max(...differences)}`);
  const spread = Math.max(...expected) - Math.min(...expected);
  t.true(spread > 0.2, `${spread}, ${Math.max(...differences)}`);
});

test('every failure of the device is an error of opening or of the run, and holds nothing', (t) => {
  const [width, height] = [8, 8];
  const gpu = write('faults.gpu', program(network(width, height)));
  const [input = new Float32Array()] = images(1, 3 * width * height);
  const { calls, codes, held } = addon.gpuNetworkFaults(gpu, width, height, input);
  t.true(calls > 40);
  t.deepEqual([...new Set(codes)], [DEVICE]);
  t.is(held, 0);
});

test('damaged programs are refused with a sentence', (t) => {
  const bytes = program(network(16, 16));
  const [input = new Float32Array()] = images(1, 3 * 16 * 16);
  const refused = (name: string, damaged: Uint8Array) => {
    const { code, message } = addon.gpuNetwork(write(name, damaged), 16, 16, 1, [input]);
    t.is(code, MODEL, name);
    t.regex(message, /^The network '.+' .+\.$|^The low-precision part .+\.$/, name);
  };
  refused('empty', new Uint8Array());
  refused('other', Buffer.from('no program at all, but a text that is long enough'));
  for (const length of [8, 20, 24, 100, bytes.length - 4000])
    refused(`short ${length}`, bytes.subarray(0, length));
  const counts = Uint8Array.from(bytes);
  counts.fill(0xff, 8, 20);
  refused('counts', counts);
  const code = Uint8Array.from(bytes);
  code.fill(0x7f, 24, 64);
  refused('code', code);
  t.is(addon.gpuNetwork(path.join(folder, 'missing'), 16, 16, 1, [input]).code, MODEL);
});

test('networks with other operations, or another end than a sigmoid, are no programs', (t) => {
  const build = (make: (net: NetworkBuilder) => string) => {
    const net = new NetworkBuilder(1);
    return net.build(make(net), 16, 16).file;
  };
  const refuse = (make: (net: NetworkBuilder) => string) =>
    t.throws(() => program(build(make)), { instanceOf: RangeError });
  refuse((net) => net.conv('image', { channels: 16 }));
  // Another operation between a first convolution and a good end.
  const between = (make: (net: NetworkBuilder, map: string) => string) =>
    refuse((net) => net.apply('Sigmoid', net.logit(make(net, net.conv('image', { channels: 32 })))));
  between((net, map) => net.conv(map, { channels: 32, depthwise: true }));
  between((net, map) => net.conv(map, { channels: 32, kernel: 7 }));
  between((net, map) => net.apply('HardSwish', net.conv(map, { channels: 32, relu: false })));
  between((net, map) => net.apply('Relu', net.add(map, map)));
  between((net, map) => net.apply('Mul', map, net.apply('GlobalAveragePool', map)));
  between((net, map) => net.concat(map, 'image'));
  // Planes of which another operation reads one too.
  between((net, map) => {
    const plane = net.conv(map, { channels: 1, relu: false });
    return net.add(net.conv(net.concat(plane, plane), { channels: 1 }), plane);
  });
  refuse((net) => weighted(net, 2));
  refuse((net) => net.apply('Sigmoid', net.resize(net.logit(net.conv('image', { channels: 16 })), 0.5)));
});

/** A random network of convolutions, many of which have something that no kernel for a GPU has. */
function randomNetwork(seed: number): Uint8Array {
  const next = random(seed);
  const pick = <T>(...of: readonly T[]): T => of[Math.floor(next() * of.length)] as T;
  const net = new NetworkBuilder(seed);
  let map = net.conv('image', { channels: pick(16, 32), kernel: pick(1, 3, 5), stride: pick(1, 2) });
  for (let count = 0; count < 4; count++) {
    const odd = next() < 0.15;
    const conv = (from: string) => net.conv(from, { channels: 32, kernel: odd ? 7 : pick(1, 3, 5) });
    map = pick(
      () => conv(map),
      () => conv(net.pool(map, true)),
      () => conv(net.resize(map, 2)),
      () => (odd ? net.apply('Relu', net.add(map, map)) : net.add(map, map)),
      () => net.concat(map, conv(map)),
    )();
  }
  const last = next();
  // Of one channel nearly always: else of several, or a map itself, or of the image.
  const output =
    last < 0.85
      ? net.conv(map, { channels: 1, relu: false })
      : last < 0.9
        ? net.conv(map, { channels: 2, relu: false })
        : last < 0.95
          ? map
          : net.conv('image', { channels: 1, relu: false });
  return net.build(output, 8, 8).file;
}

test('a program is written exactly where the kernels for a GPU take it', (t) => {
  const [input = new Float32Array()] = images(1, 3 * 8 * 8);
  const verdicts = { taken: 0, refused: 0 };
  for (let seed = 0; seed < 48; seed++) {
    const { graph } = fromBinary(ModelProtoSchema, randomNetwork(seed));
    if (!graph) throw new Error('the network has no graph');
    const program = makeSixteenBitNetwork(graph, floatReader(new Set(), halfWidener()), 'fp16');
    let refused: string | undefined;
    try {
      checkOperations(program);
    } catch (error) {
      refused = String(error);
    }
    const file = write(`random${seed}`, Buffer.concat(gpuFile(program, 1)));
    const { code, message } = addon.gpuNetwork(file, 8, 8, 1, [input]);
    t.is(code, refused === undefined ? 0 : MODEL, `network ${seed}: ${refused ?? 'taken'}, ${message}`);
    verdicts[refused === undefined ? 'taken' : 'refused']++;
  }
  t.true(verdicts.taken > 8 && verdicts.refused > 8, JSON.stringify(verdicts));
});

test('weights are rounded to the nearest float16', (t) => {
  const decode = (bits: number) => {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
    return (bits & 0x8000 ? -1 : 1) * size;
  };
  const nearest = (value: number) => {
    const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -14) - 10);
    const units = value / unit;
    const low = Math.floor(units);
    const up = units - low > 0.5 || (units - low === 0.5 && low % 2 !== 0);
    return (up ? low + 1 : low) * unit;
  };
  const next = random(11);
  const values = Float32Array.from({ length: 16 * 64 }, (_, i) => (next() - 0.5) * 2 ** ((i % 40) - 26));
  values.set([
    0,
    1,
    -1,
    65504,
    2 ** -24,
    2 ** -25,
    3 * 2 ** -25,
    2 ** -14,
    1 + 2 ** -11,
    1 + 3 * 2 ** -11,
    2047.5,
  ]);
  const packed = packSixteen(values, 16, 64, { kernel: [1, 1], dilation: 1 }, 'fp16');
  const bits = new Uint16Array(packed.buffer);
  for (let output = 0; output < 16; output++) {
    for (let channel = 0; channel < 64; channel++) {
      const [chunk, within] = [Math.floor(channel / 32), channel % 32];
      const at = ((chunk * 16 + Math.floor(within / 2)) * 16 + output) * 2 + (within % 2);
      const value = values[output * 64 + channel] as number;
      t.is(decode(bits[at] as number) + 0, nearest(value) + 0, `${value}`);
    }
  }
});
