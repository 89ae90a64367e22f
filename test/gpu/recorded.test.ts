import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { fromBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { runtimeCommand } from '../../src/cli/runtime.ts';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { gpuProgram } from '../../src/compiler/lowPrecision/gpu.ts';
import { floatReader, halfWidener } from '../../src/compiler/onnx/half.ts';
import { ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { requirementsFile, runtimes } from '../../src/runtime/installed.ts';
import { Networks } from '../fixtures/engineSetup.ts';
import { sayLeftOut, unless } from '../fixtures/leftOut.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { TRANSFORMER_SIDE, transformerNetwork } from '../fixtures/transformer.ts';

/**
 * What a GPU would be asked to do: the engine, where ONNX Runtime runs the network with its real build for GPUs, over a stand-in for
 * CUDA (recorder/) that counts every call, computes nothing, and makes single calls fail.
 */

/** native/core/status.h */
const CODES = { ok: 0, model: 5, provider: 7, device: 9, deviceMemory: 10, outOfMemory: 11, internal: 12 };

const native = path.join(root, 'build', 'native');
const recorder = path.join(native, 'Release', 'libcutout_recorder.so');
const networks = new Networks();
test.after.always(() => networks.remove());

/** The names under which the provider and the engine look for CUDA. */
const libraries = path.join(networks.folder, 'cuda');
mkdirSync(libraries);
for (const name of [
  'cudart.so.13',
  'cudnn.so.9',
  'cublas.so.13',
  'cublasLt.so.13',
  'curand.so.10',
  'cuda.so.1',
])
  symlinkSync(recorder, path.join(libraries, `lib${name}`));

const [wheel = ''] = /^onnxruntime-gpu==.*$/m.exec(readFileSync(requirementsFile('cuda'), 'utf8')) ?? [];
const [, digest = ''] = /sha256:(\w{12})/.exec(wheel) ?? [];

/** ONNX Runtime's wheel alone, kept for the next run of the tests; undefined where it is not to be had. */
async function onnxRuntime(t: ExecutionContext): Promise<string | undefined> {
  const runtimesDir = path.join(root, 'build', 'runtimes', `onnxruntime-gpu-${digest}`);
  const library = path.join(runtimesDir, 'cuda', runtimes.cuda.onnxruntime);
  if (!existsSync(library)) {
    const requirements = path.join(networks.folder, 'requirements.txt');
    writeFileSync(requirements, `${wheel}\n`);
    const command = runtimeCommand({ runtimesDir, requirements, out: new PassThrough() });
    await command.parseAsync(['install', 'cuda'], { from: 'user' }).catch(() => {});
  }
  if (existsSync(library)) return library;
  sayLeftOut(t, 'pip or its registry was not reached, so the calls of a GPU were not counted');
  return undefined;
}

interface Case {
  readonly network: string;
  /** For Cutout's kernels. */
  readonly program?: boolean;
  readonly side: number;
  readonly batch: number;
  /** Without, the steps around the network run on the CPU. */
  readonly kernels?: boolean;
}

/** Calls by kind, and their bytes: recorder/recorder.h. */
type Counts = Readonly<Record<string, number>>;

interface Round {
  readonly width: number;
  readonly runs: number;
  readonly counts: Counts;
}

interface Counted {
  readonly opened: Counts;
  readonly rounds: readonly Round[];
  readonly log: readonly string[];
}

interface Fault {
  readonly call: string;
  readonly nth: number;
  readonly opening: boolean;
  readonly lost: boolean;
  /** Whether the call was made. */
  readonly made: boolean;
  readonly code: number;
  readonly message: string;
  /** After the fault. */
  readonly next: number;
  readonly nextMessage: string;
}

async function play(runtime: string, part: 'counts' | 'faults', what: Case) {
  const { network, program = false, side, batch, kernels = true } = what;
  const table = kernels ? recorder : path.join(networks.folder, 'none.so');
  const args = [runtime, table, network, program ? '1' : '0', String(side), String(batch), part];
  const run = spawn(path.join(native, 'cutout_recorded'), args, {
    env: { ...process.env, LD_LIBRARY_PATH: libraries },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, log] = ['', ''];
  run.stdout.on('data', (data) => {
    out += data;
  });
  run.stderr.on('data', (data) => {
    log += data;
  });
  const [status, signal] = await once(run, 'close');
  return { status: status ?? signal, out, log };
}

async function count(t: ExecutionContext, runtime: string, what: Case): Promise<Counted> {
  const { status, out, log } = await play(runtime, 'counts', what);
  if (status !== 0) throw new Error(`cutout_recorded ended with ${status}: ${log}`);
  const counted: Counted = JSON.parse(out);
  for (const counts of [counted.opened, ...counted.rounds.map((round) => round.counts)])
    t.is(counts['outside'], 0, 'every copy stays inside the memory of the device');
  return counted;
}

const folder = networks.folder;

/** A network by ONNX Runtime, with free batches. */
const onnx: Case = {
  network: networks.spec('recorded', { batch: true, convolutions: 2 }).path,
  side: 64,
  batch: 1,
};

/** A network by Cutout's kernels. */
function program(): Case {
  const net = new NetworkBuilder(7);
  const map = net.conv(net.conv('image', { channels: 32, stride: 2 }), { channels: 32 });
  const logit = net.resize(net.conv(map, { channels: 1, relu: false }), 2);
  const { graph } = fromBinary(ModelProtoSchema, net.build(net.apply('Sigmoid', logit), 64, 64).file);
  if (!graph) throw new Error('the network has no graph');
  const file = path.join(folder, 'recorded.gpu');
  writeFileSync(file, Buffer.concat(gpuProgram(graph, floatReader(new Set(), halfWidener()))));
  return { network: file, program: true, side: 64, batch: 1 };
}

const own = program();
/** What one run of a network may take at most: launches and waits; and the waits of an image beside it. */
interface Run {
  readonly launches: number;
  readonly waits: number;
  readonly ofImage: number;
}

/** With the copies into a batch and out of it. The answer is read behind the run. */
const byOnnxRuntime: Run = { launches: 20, waits: 4, ofImage: 3 };
const byCutout: Run = { launches: 1, waits: 1, ofImage: 2 };

/**
 * Asserts that the images of each round are copied once each way, a third of their bytes back, from and to page-locked memory,
 * beside a copy of constants and one of what the network's answer is; that two waits are an image's own; and that nothing waits for
 * the whole device.
 */
function isLean(t: ExecutionContext, { rounds }: Counted, images: number, run: Run): void {
  const all = rounds.reduce((sum, { runs }) => sum + runs, 0);
  t.true(images === 1 || all < rounds.length * images, `${all} runs: there were batches`);
  for (const { width, runs, counts } of rounds) {
    const bytes = width * (width === 4000 ? 3000 : 866) * 4;
    const n = (name: string) => counts[name] ?? Number.NaN;
    const said = `${images} of ${width}: ${runs} runs, ${JSON.stringify(counts)}`;
    t.true(runs >= 1 && runs <= images, said);
    for (const none of ['pageable', 'deviceWait', 'eventWait', 'defaults']) t.is(n(none), 0, said);
    t.is(n('upload'), images * 2, said);
    t.true(n('uploadBytes') < images * (bytes + 300_000), said);
    t.is(n('download'), images * 2, said);
    t.true(n('downloadBytes') < images * (bytes / 3 + 400), said);
    t.true(n('streamWait') <= images * run.ofImage + runs * run.waits, said);
    t.true(n('launch') + n('library') + n('graph') <= images * 175 + runs * run.launches, said);
  }
}

test.serial(
  'a network by ONNX Runtime: one copy of an image each way, and no wait for the device',
  async (t) => {
    const runtime = await onnxRuntime(t);
    if (runtime === undefined) return;
    for (const batch of [1, 8]) {
      const counted = await count(t, runtime, { ...onnx, batch });
      t.deepEqual(counted.log, []);
      isLean(t, counted, batch, byOnnxRuntime);
    }
  },
);

test.serial(
  "BiRefNet's operators by ONNX Runtime: none on the CPU, and the same copies and waits",
  async (t) => {
    const runtime = await onnxRuntime(t);
    if (runtime === undefined) return;
    const network = path.join(folder, 'transformer.onnx');
    const { pieces } = compileOnnx(transformerNetwork(), undefined, 'fp32');
    writeFileSync(network, Buffer.concat([...pieces]));
    const counted = await count(t, runtime, { network, side: TRANSFORMER_SIDE, batch: 1 });
    t.deepEqual(counted.log, []);
    isLean(t, counted, 1, { ...byOnnxRuntime, launches: 30 });
  },
);

test.serial('a network by Cutout: the same, and one launch for each batch', async (t) => {
  for (const batch of [1, 8]) {
    const counted = await count(t, defaultRuntimePath(), { ...own, batch });
    t.deepEqual(counted.log, []);
    isLean(t, counted, batch, byCutout);
    for (const { runs, counts } of counted.rounds) t.is(counts['graph'], runs);
  }
});

test.serial(
  'without kernels the network alone is on the GPU, its values in page-locked memory',
  async (t) => {
    const runtime = await onnxRuntime(t);
    if (runtime === undefined) return;
    const { rounds, log } = await count(t, runtime, { ...onnx, kernels: false });
    t.regex(log.join(), /steps around them on the CPU/);
    for (const { counts } of rounds) {
      const input = 4 * 3 * onnx.side ** 2;
      t.like(counts, { upload: 1, uploadBytes: input, download: 1, downloadBytes: input / 3, pageable: 0 });
      t.like(counts, { deviceWait: 0, defaults: 0, allocate: 0 });
      t.true((counts['streamWait'] ?? 3) <= 2);
    }
  },
);

test.serial(
  'an operator without a kernel for CUDA is named, and nothing falls back to the CPU',
  async (t) => {
    const runtime = await onnxRuntime(t);
    if (runtime === undefined) return;
    const net = new NetworkBuilder(1);
    const map = net.apply('Celu', net.conv('image', { channels: 1, relu: false }));
    const network = path.join(folder, 'celu.onnx');
    writeFileSync(network, net.build(map, 64, 64).file);
    const { status, log } = await play(runtime, 'counts', { network, side: 64, batch: 1 });
    t.is(status, 1);
    t.regex(log, /operators that the GPU does not run.*Celu \(/s);
  },
);

/** The code of a call that fails without ending the device. */
function expected({ call, opening }: Fault): readonly number[] {
  // Refused memory is asked for once more when what earlier images left is released.
  if (call === 'allocate') return [CODES.ok, CODES.deviceMemory];
  if (call === 'allocatePinned') return [CODES.ok, CODES.outOfMemory];
  return opening ? [CODES.model, CODES.internal] : [CODES.internal];
}

for (const [name, what, find] of [
  ['ONNX Runtime', onnx, onnxRuntime],
  ['Cutout', own, () => Promise.resolve(defaultRuntimePath())],
] as const) {
  test.serial(
    `${name}: a call of each kind that fails, or loses the device, is an error, and the next image is made`,
    async (t) => {
      const runtime = await find(t);
      if (runtime === undefined) return;
      const { status, out, log } = await play(runtime, 'faults', what);
      t.is(status, 0, log);
      const faults: readonly Fault[] = JSON.parse(out);
      t.true(faults.length > 40);
      for (const fault of faults) {
        const said = JSON.stringify(fault);
        t.true(fault.made, said);
        if (!fault.lost) {
          t.true(expected(fault).includes(fault.code), said);
          t.is(fault.next, CODES.ok, said);
          continue;
        }
        // Neither cuDNN's error nor a refused allocation says that the device is lost.
        const hidden = fault.opening && /CUDNN|Failed to allocate memory/.test(fault.message);
        if (!hidden) t.is(fault.code, CODES.device, said);
        if (!hidden) t.regex(fault.message, /stopped working in this process.*Restart the server/, said);
        if (!fault.opening) t.is(fault.next, CODES.device, said);
      }
    },
  );
}

const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
const isnet = (form: string) => path.join(modelsDir, 'isnet', `prepared.${form}`);
const noIsnet = [isnet('tensorrt.onnx'), isnet('gpu')].find((file) => !existsSync(file));

unless(noIsnet && `${noIsnet} is not there, so the calls of IS-Net were not counted`, test.serial)(
  'IS-Net, alone and in batches',
  async (t) => {
    const runtime = await onnxRuntime(t);
    if (runtime === undefined) return;
    for (const batch of [1, 8]) {
      const sized = { side: 1024, batch };
      isLean(t, await count(t, runtime, { ...sized, network: isnet('tensorrt.onnx') }), batch, {
        ...byOnnxRuntime,
        launches: 573,
      });
      isLean(t, await count(t, runtime, { ...sized, network: isnet('gpu'), program: true }), batch, byCutout);
    }
  },
);
