import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { Networks } from '../fixtures/engineSetup.ts';

/** native/core/status.h */
const CODES = {
  ok: 0,
  model: 5,
  runtime: 6,
  provider: 7,
  driver: 8,
  device: 9,
  deviceMemory: 10,
  outOfMemory: 11,
  internal: 12,
} as const;

interface Status {
  readonly code: number;
  readonly message: string;
}

interface GpuTestAddon {
  find(
    library: string,
    device: number,
  ): Status & {
    readonly name: string;
    readonly memoryBytes: number;
    readonly driverCuda: number;
    readonly compute: number;
  };
  check(driverCuda: number, major: number, minor: number, cudaRuntime: number, tensorrt: boolean): Status;
  failure(message: string): Status;
  failureOnCpu(message: string): Status;
  nodes(log: string, limit: number): string;
  options(
    tensorrt: boolean,
    deviceId: number,
    fp16: boolean,
    engineCache: string,
    memoryLimit: number,
  ): Record<string, string>;
  run(
    runtimePath: string,
    file: string,
    width: number,
    height: number,
    bind: boolean,
    inputs: readonly Float32Array[],
  ): readonly Float32Array[];
  capabilities(library: string): string;
  use(library: string, device: number): readonly [used: number, total: number] | undefined;
  openWithin(
    runtimePath: string,
    file: string,
    width: number,
    height: number,
    batches: readonly number[],
    limit: number,
    total: number,
    uses: readonly number[],
  ): Status & {
    readonly sizes: readonly number[];
    readonly reserved: number;
    readonly limit: number;
    readonly asked: number;
    readonly after: number;
    readonly tooLarge?: number;
  };
  /** As `run`, `members` inputs at a time as one batch of the smallest of these sizes that holds them. */
  runBatches(
    runtimePath: string,
    file: string,
    width: number,
    height: number,
    batches: readonly number[],
    members: number,
    inputs: readonly Float32Array[],
    /** Inputs and outputs lie on the host as a device. */
    device: boolean,
  ): readonly Float32Array[];
  openSlots(
    runtimePath: string,
    file: string,
    width: number,
    height: number,
  ): {
    readonly opened: number;
    readonly refused: readonly number[];
    readonly afterwards: number;
    readonly last: number;
    readonly run: number;
    readonly check: number;
    readonly held: number;
  };
  /** Where libcutout_cuda.so is looked for. */
  libraryFile(): string;
  /** Opens libcutout_cuda.so. */
  kernels(file: string): Status & { readonly found: boolean; readonly log: string };
}

const release = path.join(root, 'build', 'native', 'Release');
const addon = createRequire(import.meta.url)(path.join(release, 'cutout_gpu_test.node')) as GpuTestAddon;
const driver = path.join(release, 'libcutout_fake_driver.so');

test('find_device: without a driver the message says what to install', (t) => {
  const { code, message } = addon.find('libcutout-no-such-driver.so.1', 0);
  t.is(code, CODES.driver);
  t.regex(message, /^It fails: the NVIDIA driver is not installed .*container toolkit.*--gpus all/);
  const foreign = addon.find('libm.so.6', 0);
  t.is(foreign.code, CODES.driver);
  t.regex(foreign.message, /functions are missing/);
});

test.serial('find_device: each answer of the driver is a code and a remedy', (t) => {
  const cases: readonly [string, number, number, RegExp][] = [
    ['', 0, CODES.ok, /^$/],
    ['count=2', 1, CODES.ok, /^$/],
    ['count=2', 2, CODES.device, /no GPU 2; the driver numbers them from 0 to 1.*CUTOUT_DEVICE_ID/],
    ['count=0', 0, CODES.device, /finds no GPU.*nvidia-smi/],
    ['init=100', 0, CODES.device, /finds no GPU/],
    ['init=46', 0, CODES.device, /in use by processes/],
    ['init=34', 0, CODES.driver, /stub.*LD_LIBRARY_PATH/],
    ['init=803', 0, CODES.driver, /different versions.*Restart/],
    ['init=804', 0, CODES.driver, /compatibility libraries/],
    ['init=999', 0, CODES.driver, /does not start \(CUDA error 999\)/],
    ['get=101', 0, CODES.driver, /CUDA error 101/],
  ];
  for (const [answers, device, code, message] of cases) {
    process.env['CUTOUT_TEST_CUDA'] = answers;
    const found = addon.find(driver, device);
    t.is(found.code, code, `${answers}: ${found.message}`);
    t.regex(found.message, message, answers);
  }
  process.env['CUTOUT_TEST_CUDA'] = 'driver=12080 major=8 minor=6';
  t.like(addon.find(driver, 0), {
    name: 'Stand-in',
    driverCuda: 12080,
    compute: 86,
    memoryBytes: 80 * 2 ** 30,
  });
  process.env['CUTOUT_TEST_CUDA'] = 'count=5';
  t.is(addon.capabilities(driver), '9.0 '.repeat(5));
  process.env['CUTOUT_TEST_CUDA'] = 'init=100 count=5';
  t.is(addon.capabilities(driver), '');
  delete process.env['CUTOUT_TEST_CUDA'];
  t.is(addon.capabilities('libcutout-no-such-driver.so.1'), '');
});

test('check_device: the driver has to support the major version of CUDA, the GPU the code in it', (t) => {
  const cases: readonly [[number, number, number, number, boolean], number, RegExp][] = [
    [[13000, 9, 0, 13000, false], CODES.ok, /^$/],
    // Minor versions of CUDA are compatible.
    [[13000, 7, 5, 13020, true], CODES.ok, /^$/],
    [[13010, 9, 0, 12080, false], CODES.ok, /^$/],
    [[12090, 9, 0, 13000, false], CODES.driver, /too old. It supports CUDA 12.9.*13.0 \(driver 580/],
    [[11080, 8, 0, 12040, false], CODES.driver, /supports CUDA 11.8.*12.0 \(driver 525/],
    [
      [13000, 7, 0, 13000, false],
      CODES.device,
      /compute capability 7.0, and 7.5 or newer.*CUTOUT_DEVICE=cpu/,
    ],
    [[12080, 7, 0, 12080, false], CODES.ok, /^$/],
    [[12080, 7, 0, 12080, true], CODES.device, /7.5 or newer/],
  ];
  for (const [given, code, message] of cases) {
    const status = addon.check(...given);
    t.is(status.code, code, `${given}: ${status.message}`);
    t.regex(status.message, message, String(given));
  }
});

test('gpu_failure: messages of ONNX Runtime get a code and a remedy, and are kept', (t) => {
  const cases: readonly [string, number, RegExp][] = [
    // As the real provider library reports it, without its folder.
    [
      '/onnxruntime_src/a.cc:1988 Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory',
      CODES.provider,
      /libcublasLt\.so\.13 is missing. Run `cutout runtime install cuda`.*\[\[ONNXRuntimeError\]/,
    ],
    [
      'libnvinfer.so.10: cannot open shared object file: No such file',
      CODES.provider,
      /TensorRT is missing.*docs\/gpu\.md/,
    ],
    ['libcuda.so.1: cannot open shared object file: No such file', CODES.driver, /driver is not installed/],
    [
      'CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0',
      CODES.driver,
      /too old/,
    ],
    ['CUDA failure 100: no CUDA-capable device is detected ; GPU=-1', CODES.device, /finds no GPU/],
    ['CUDA failure 101: invalid device ordinal ; GPU=7', CODES.device, /CUTOUT_DEVICE_ID/],
    [
      'CUDA failure 209: no kernel image is available for execution on the device',
      CODES.device,
      /architecture/,
    ],
    [
      'CUDA failure 700: an illegal memory access was encountered ; GPU=0',
      CODES.device,
      /Restart the server/,
    ],
    // As one of its kernels reports it.
    [
      "Non-zero status code returned while running Relu node. Name:'r' Status Message: CUDA error cudaErrorLaunchFailure:unspecified launch failure",
      CODES.device,
      /Restart the server/,
    ],
    ['CUDA failure 2: out of memory ; GPU=0', CODES.deviceMemory, /not enough free memory.*CUTOUT_WORKERS=1/],
    [
      'Failed to allocate memory for requested buffer of size 268435456',
      CODES.deviceMemory,
      /not enough free memory/,
    ],
    ['CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED', CODES.deviceMemory, /not enough free memory/],
    [
      'This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled by the user.',
      CODES.provider,
      /operators that the GPU does not run.*CUTOUT_DEVICE=cpu/,
    ],
    ['WebGPU device lost (2): A valid external Instance', CODES.device, /Restart the server/],
    ['Failed to get a WebGPU adapter: No supported adapters', CODES.driver, /Vulkan driver.*libvulkan1/],
    ['CUDA failure 4242: another', CODES.internal, /^It fails: CUDA failure 4242: another$/],
    ['something else', CODES.internal, /^It fails: something else$/],
  ];
  for (const [message, code, sentence] of cases) {
    const status = addon.failure(message);
    t.is(status.code, code, message);
    t.regex(status.message, sentence);
    t.true(status.message.includes(message.slice(message.lastIndexOf('FAIL'))), message);
  }
});

test('cpu_failure: refused threads and memory get a code, and threads a remedy', (t) => {
  const cases: readonly [string, number, RegExp][] = [
    // As ONNX Runtime reported it with `ulimit -u 14`.
    [
      '/onnxruntime_src/onnxruntime/core/platform/posix/env.cc:251 onnxruntime::{anonymous}::PosixThread::PosixThread(const char*, int) pthread_create failed, error code: 11 error msg: Resource temporarily unavailable',
      CODES.runtime,
      /^It fails: the system did not start all of its threads\. Raise .*ulimit -u, pids\.max\), or set CUTOUT_WORKERS and CUTOUT_THREADS to fewer\.$/,
    ],
    ['Failed to allocate memory for requested buffer of size 1', CODES.outOfMemory, /^It fails: Failed/],
    ['std::bad_alloc', CODES.outOfMemory, /^It fails: std::bad_alloc$/],
    ['something else', CODES.internal, /^It fails: something else$/],
  ];
  for (const [message, code, sentence] of cases) {
    const status = addon.failureOnCpu(message);
    t.is(status.code, code, message);
    t.regex(status.message, sentence);
  }
});

test('nodes_on_cpu: names what ONNX Runtime placed on the CPU, up to a limit', (t) => {
  const log = [
    'Node placements',
    ' Node(s) placed on [CUDAExecutionProvider]. Number of nodes: 1',
    '  Conv (first)',
    ' Node(s) placed on [CPUExecutionProvider]. Number of nodes: 3',
    '  Resize (up)',
    '  NonZero (where)',
    '  Shape (last)',
    'another message',
  ].join('\n');
  t.is(addon.nodes(log, 5), 'Resize (up), NonZero (where), Shape (last)');
  t.is(addon.nodes(log, 2), 'Resize (up), NonZero (where)');
  t.is(addon.nodes('', 5), '');
  const webgpu = 'webgpu kernel not found in registries for Op type: ConvInteger node name: Conv_0';
  t.is(
    addon.nodes(`${webgpu}\nanother message\n${webgpu}_quant`, 5),
    'ConvInteger (Conv_0), ConvInteger (Conv_0_quant)',
  );
});

test('options of the providers', (t) => {
  t.deepEqual(addon.options(false, 3, true, '/cache', 0), {
    device_id: '3',
    arena_extend_strategy: 'kSameAsRequested',
    cudnn_conv_algo_search: 'HEURISTIC',
  });
  t.deepEqual(addon.options(true, 0, false, '', 0), { device_id: '0', trt_fp16_enable: '0' });
  t.deepEqual(addon.options(true, 1, true, '/cache', 0), {
    device_id: '1',
    trt_fp16_enable: '1',
    trt_layer_norm_fp32_fallback: '1',
    trt_engine_cache_enable: '1',
    trt_engine_cache_path: '/cache',
    trt_timing_cache_enable: '1',
    trt_timing_cache_path: '/cache',
  });
  t.like(addon.options(false, 0, false, '', 5e9), { gpu_mem_limit: '5000000000' });
  t.like(addon.options(true, 0, false, '', 5e9), { trt_max_workspace_size: '5000000000' });
});

test('runs with bound inputs and outputs give the same values as others, run after run', (t) => {
  const networks = new Networks();
  t.teardown(() => networks.remove());
  const { path: file } = networks.spec('bound', { convolutions: 2 });
  const inputs = [1, 2, 3, 4, 5].map((seed) =>
    Float32Array.from({ length: 3 * 64 * 64 }, (_, at) => Math.sin(seed * 12.9898 + at * 0.017)),
  );
  const plain = addon.run(defaultRuntimePath(), file, 64, 64, false, inputs);
  const bound = addon.run(defaultRuntimePath(), file, 64, 64, true, inputs);
  const bytes = (values: Float32Array = new Float32Array()) => [...values].join();
  t.is(bound.length, inputs.length);
  for (const [at, values] of bound.entries()) t.true(bytes(values) === bytes(plain[at]), String(at));
  t.false(bytes(plain[0]) === bytes(plain[1]));
});

test('batches of 2 to 4 give the same bytes as single runs, full or padded', (t) => {
  const networks = new Networks();
  t.teardown(() => networks.remove());
  const { path: file } = networks.spec('batched', { convolutions: 2, batch: true });
  const inputs = [1, 2, 3, 4, 5, 6, 7].map((seed) =>
    Float32Array.from({ length: 3 * 64 * 64 }, (_, at) => Math.sin(seed * 12.9898 + at * 0.017)),
  );
  const bytes = (values: Float32Array = new Float32Array()) =>
    Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  const alone = addon.run(defaultRuntimePath(), file, 64, 64, false, inputs);
  for (const [sizes, members] of [
    [[2], 2],
    [[2, 3], 3],
    [[2, 4], 3],
    [[2, 4], 4],
  ] as const) {
    for (const device of [false, true]) {
      const batched = addon.runBatches(defaultRuntimePath(), file, 64, 64, sizes, members, inputs, device);
      t.is(batched.length, inputs.length);
      for (const [at, values] of batched.entries())
        t.true(bytes(values).equals(bytes(alone[at])), `${members} in ${sizes}, device ${device}: ${at}`);
    }
  }
});

test('slots on a device are allocated when they are opened, and as before where there is no memory', (t) => {
  const networks = new Networks();
  t.teardown(() => networks.remove());
  const { path: file } = networks.spec('slots');
  const slot = 4 * (3 + 1) * 64 * 64;
  t.deepEqual(addon.openSlots(defaultRuntimePath(), file, 64, 64), {
    opened: slot,
    refused: [CODES.deviceMemory, CODES.deviceMemory],
    afterwards: slot,
    last: 2 * slot,
    run: CODES.ok,
    check: CODES.ok,
    held: 0,
  });
});

test('a network of a fixed batch is opened without batches', (t) => {
  const networks = new Networks();
  t.teardown(() => networks.remove());
  const { path: file } = networks.spec('single', { convolutions: 2 });
  const inputs = [new Float32Array(3 * 64 * 64).fill(0.5), new Float32Array(3 * 64 * 64).fill(1)];
  t.deepEqual(
    addon.runBatches(defaultRuntimePath(), file, 64, 64, [2, 4], 1, inputs, false),
    addon.run(defaultRuntimePath(), file, 64, 64, false, inputs),
  );
});

test.serial('device_use: the CUDA runtime is asked for one device, and only if it is loaded', (t) => {
  t.is(addon.use('libcutout-no-such-runtime.so.13', 0), undefined);
  t.is(addon.capabilities(driver), '9.0 ', 'loads the stand-in');
  process.env['CUTOUT_TEST_CUDA'] = 'free=60 device=3';
  t.deepEqual(addon.use(driver, 3), [20 * 2 ** 30, 80 * 2 ** 30]);
  t.is(addon.use(driver, 2), undefined);
  process.env['CUTOUT_TEST_CUDA'] = 'set=101';
  t.is(addon.use(driver, 3), undefined);
  delete process.env['CUTOUT_TEST_CUDA'];
});

test('device memory: a network is opened for the batches that fit, and gives back what it took', (t) => {
  const networks = new Networks();
  t.teardown(() => networks.remove());
  const { path: file } = networks.spec('within', { batch: true });
  const megabyte = 1e6;
  const open = (limit: number, ...uses: number[]) =>
    addon.openWithin(
      defaultRuntimePath(),
      file,
      64,
      64,
      [2, 4],
      limit * megabyte,
      1000 * megabyte,
      uses.map((use) => use * megabyte),
    );
  // Other processes use 100; the batches take 50, 70 and 90.
  const all = open(300, 100, 150, 150, 220, 220, 310);
  t.like(all, { code: CODES.ok, sizes: [1, 2, 4], reserved: 210 * megabyte, after: 0 });
  // 4 is opened, takes 90 of the 80 that are left, and is closed.
  t.like(open(200, 100, 150, 150, 220, 220, 310), { sizes: [1, 2], reserved: 120 * megabyte });
  // 2 takes at least what 1 takes, which is more than what is left: it is not opened.
  t.like(open(90, 100, 150, 150), { sizes: [1], reserved: 50 * megabyte, asked: 3 });
  // A size that is not open is a lack of memory, so that the batcher goes on with smaller ones.
  t.is(all.tooLarge, CODES.deviceMemory);
  const none = open(40, 100, 150);
  t.like(none, { code: CODES.deviceMemory, sizes: [], reserved: 0 });
  t.regex(
    none.message,
    /: 50 MB of device memory are needed, and 40 MB of 40 MB are left\. .*CUTOUT_DEVICE_MEMORY/,
  );
  // Without a limit nine tenths of the device.
  t.like(open(0, 100, 150, 150, 220, 220, 310), { sizes: [1, 2, 4], limit: 900 * megabyte });
  // What cannot be measured fits.
  t.like(open(40), { code: CODES.ok, sizes: [1, 2, 4], reserved: 0 });
});

test('the library of the kernels is looked for beside the addon, wherever that lies', (t) => {
  t.is(addon.libraryFile(), path.join(release, 'libcutout_cuda.so'));
  const elsewhere = mkdtempSync(path.join(tmpdir(), 'cutout-package-'));
  t.teardown(() => rmSync(elsewhere, { recursive: true, force: true }));
  const copy = path.join(elsewhere, 'cutout.node');
  copyFileSync(path.join(release, 'cutout_gpu_test.node'), copy);
  const moved = createRequire(import.meta.url)(copy) as GpuTestAddon;
  t.is(moved.libraryFile(), path.join(elsewhere, 'libcutout_cuda.so'));
});

test('without the library of the kernels the log says that the steps around the network run on the CPU', (t) => {
  const missing = path.join(release, 'no', 'libcutout_cuda.so');
  const { code, found, log } = addon.kernels(missing);
  t.deepEqual({ code, found }, { code: CODES.ok, found: false });
  t.is(
    log,
    `Networks run on the GPU by ONNX Runtime alone, the steps around them on the CPU: there is no ${missing} (docs/gpu.md).\n`,
  );
});

test('a library of the kernels that cannot be used is an error, not a reason to use the CPU', (t) => {
  const old = addon.kernels(path.join(release, 'libcutout_old_kernels.so'));
  t.is(old.code, CODES.provider);
  t.false(old.found);
  const [, has, needs] =
    /has version (\d+) of the kernels for a GPU; this program needs version (\d+)\. Build both/.exec(
      old.message,
    ) ?? [];
  t.is(Number(has), Number(needs) - 1, old.message);
  const other = addon.kernels(driver);
  t.is(other.code, CODES.provider);
  t.regex(other.message, /is not the library with the kernels for a GPU/);
});
