import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { runtimeCommand } from '../../src/cli/runtime.ts';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { Network } from '../../src/compiler/network.ts';
import { shapeOf } from '../../src/compiler/onnx/graph.ts';
import { findRuntime } from '../../src/runtime/installed.ts';
import { decomposedNetwork, HEIGHT, WIDTH } from '../fixtures/decomposed.ts';
import { deformableNetwork } from '../fixtures/deformable.ts';
import { Networks } from '../fixtures/engineSetup.ts';
import { sayLeftOut, unless } from '../fixtures/leftOut.ts';
import type { EngineResult, EngineTask, RtxTask } from '../fixtures/rtxChild.ts';
import { structures } from '../fixtures/structures.ts';

/**
 * Engines of TensorRT for RTX, built by the real provider without a GPU. The provider wants to see a card, its driver and
 * CUDA's runtime before it compiles, also for another card, so the process gets stand-ins for these in a namespace of its own.
 * Nothing executes an engine.
 */

const networks = new Networks();
test.after.always(() => networks.remove());

/** Kept for the next run of the tests. */
const runtimesDir = path.join(root, 'build', 'runtimes');
const child = fileURLToPath(new URL('../fixtures/rtxChild.js', import.meta.url));
const address = '0000:01:00.0';

/** Shows ONNX Runtime a display device of NVIDIA, and nothing else on the bus; then becomes the program. */
const withDevice = [
  'cd /sys/bus/pci/devices && mount -t tmpfs stand-in . && cd "$PWD"',
  `mkdir ${address} && cd ${address}`,
  'printf 0x10de > vendor && printf 0x2684 > device && printf 0x030000 > class',
  'cd / && exec "$@"',
].join(' && ');
const runs = (program: string, ...args: string[]) =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;
const missing =
  process.arch !== 'x64'
    ? 'TensorRT for RTX is for x86-64, so no engine was built'
    : !runs('unshare', '-m', 'sh', '-c', withDevice, 'sh', 'true')
      ? 'mount namespaces (unshare, as root) are not to be had, so no engine of TensorRT for RTX was built'
      : !runs('cc', '--version') || !runs('nm', '--version')
        ? 'there is no cc or nm for the stand-ins, so no engine of TensorRT for RTX was built'
        : undefined;

/** The functions that have to answer, in C: compute capability 8.9 and 24 GB. Every other one returns 0. */
const answers: Readonly<Record<string, string>> = {
  cudaGetDeviceCount: '(int *n) { *n = 1; return 0; }',
  cudaGetDevice: '(int *n) { *n = 0; return 0; }',
  cudaDeviceGetByPCIBusId: '(int *n, const char *at) { *n = 0; return 0; }',
  cudaRuntimeGetVersion: '(int *v) { *v = 13000; return 0; }',
  cudaDeviceGetAttribute:
    '(int *v, int which, int n) { *v = which == 75 ? 8 : which == 76 ? 9 : 0; return 0; }',
  // Offsets of totalGlobalMem, major and minor in cudaDeviceProp of CUDA 13.
  cudaGetDeviceProperties:
    '(char *p, int n) { memset(p, 0, 512); strcpy(p, "Stand-in"); *(long *)(p + 288) = 24L << 30; ((int *)p)[90] = 8; ((int *)p)[91] = 9; return 0; }',
  cuInit: '(unsigned flags) { return 0; }',
  cuDriverGetVersion: '(int *v) { *v = 13000; return 0; }',
  cuDeviceGetCount: '(int *n) { *n = 1; return 0; }',
  cuDeviceGet: '(int *d, int n) { *d = n; return 0; }',
  cuDeviceGetName: '(char *name, int length, int d) { strcpy(name, "Stand-in"); return 0; }',
  cuDeviceGetAttribute: '(int *v, int which, int d) { *v = which == 75 ? 8 : 9; return 0; }',
  cuDeviceTotalMem_v2: '(unsigned long *bytes, int d) { *bytes = 24L << 30; return 0; }',
  cuDeviceGetPCIBusId: `(char *text, int length, int d) { strcpy(text, "${address}"); return 0; }`,
};

/** Compiles libraries in place of NVIDIA's with all functions that the provider's libraries ask for. */
async function makeStandIns(folder: string, users: readonly string[]): Promise<void> {
  const symbols = execFileSync('nm', ['-D', '--undefined-only', ...users], { encoding: 'utf8' });
  const asked = Array.from(symbols.matchAll(/ U (\w+)/g), ([, name = '']) => name);
  const all = [...new Set([...asked, ...Object.keys(answers)])];
  const make = async (library: string, theirs: RegExp) => {
    const code = all
      .filter((name) => theirs.test(name))
      .map((name) => `int ${name}${answers[name] ?? '() { return 0; }'}\n`);
    const [source, script] = [path.join(folder, `${library}.c`), path.join(folder, `${library}.map`)];
    await writeFile(source, `#include <string.h>\n${code.join('')}`);
    // Functions of CUDA's runtime are asked for by version, which is its name.
    await writeFile(script, `${library.replaceAll('-', '_')} { global: *; };\n`);
    const args = ['-w', '-shared', '-fPIC', `-Wl,-soname,${library}`, `-Wl,--version-script=${script}`];
    execFileSync('cc', [...args, '-o', path.join(folder, library), source]);
  };
  await make('libcudart.so.13', /^cuda/);
  await make('libcuda.so.1', /^cu(?!da)/);
  await make('libnvidia-ml.so.1', /^nvml/);
}

/** The runtime, installed by the command that operators use; undefined where the registry is not reached. */
async function install() {
  if (!findRuntime(runtimesDir, 'tensorrt')) {
    const command = runtimeCommand({ runtimesDir, out: new PassThrough() });
    await command.parseAsync(['install', 'tensorrt'], { from: 'user' }).catch(() => {});
  }
  return findRuntime(runtimesDir, 'tensorrt');
}

/** Builds the engines in a process with the stand-ins; undefined where the runtime is not to be had. */
async function build(
  t: ExecutionContext,
  engines: readonly Omit<EngineTask, 'folder'>[],
): Promise<readonly (EngineResult & { readonly engine: string })[] | undefined> {
  const installed = await install();
  if (!installed?.plugin) {
    sayLeftOut(t, 'pip or its registry was not reached, so no engine of TensorRT for RTX was built');
    return undefined;
  }
  const folder = await mkdtemp(path.join(os.tmpdir(), 'cutout-rtx-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const libraries = installed.libraries.filter((file) => !file.includes('libcudart'));
  await makeStandIns(folder, [...libraries, installed.plugin]);
  const task: RtxTask = {
    plugin: installed.plugin,
    libraries: [path.join(folder, 'libcudart.so.13'), ...libraries],
    engines: engines.map((engine, i) => ({ ...engine, folder: path.join(folder, String(i)) })),
  };
  for (const each of task.engines) await mkdir(each.folder);
  const args = ['-m', 'sh', '-c', withDevice, 'sh', process.execPath, child, JSON.stringify(task)];
  const run = spawn('unshare', args, {
    env: { ...process.env, LD_LIBRARY_PATH: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  run.stdout.on('data', (part) => {
    out += part;
  });
  const [code] = await once(run, 'close');
  if (code !== 0) throw new Error(`The child ended with ${code}: ${out}`);
  const results: EngineResult[] = JSON.parse(out);
  return results.map((result, i) => ({
    ...result,
    engine: path.join(task.engines[i]?.folder ?? '', 'engine.onnx'),
  }));
}

/** Asserts that the file is one engine with nothing beside it, for several numbers of images or for one. */
async function isOneEngine(
  t: ExecutionContext,
  file: string,
  batch: 'dimParam' | 'dimValue' = 'dimParam',
): Promise<void> {
  const { graph } = Network.read(await readFile(file));
  t.deepEqual(
    graph.node.map(({ opType }) => opType),
    ['EPContext'],
  );
  const [input] = graph.input;
  t.is(input && shapeOf(input)?.[0]?.value.case, batch);
}

const withStandIns = unless(missing, test.serial);

withStandIns(
  'a network becomes one engine for 1 to 8 images on each architecture, without a GPU',
  async (t) => {
    const { path: file } = networks.spec('free', { batch: true, convolutions: 2, sigmoid: true });
    const network = { file, width: 64, height: 64, batches: [2, 4, 8] };
    const built = await build(t, [
      ...['sm86', 'sm89', 'sm120'].map((target) => ({ ...network, target })),
      { ...network, target: 'sm80' },
      { ...network, file: networks.spec('fixed').path, target: 'sm89' },
    ]);
    if (!built) return;
    const [unknown, fixed] = built.slice(3);
    for (const { code, message, engine } of built.slice(0, 3)) {
      t.is(code, 0, message);
      await isOneEngine(t, engine);
      // The provider makes the folder; kernels come where an engine is executed.
      t.deepEqual(await readdir(`${path.dirname(engine)}.kernels`), []);
    }
    t.not(unknown?.code, 0);
    t.regex(unknown?.message ?? '', /^The engine was not built: .*sm80/);
    t.false(existsSync(unknown?.engine ?? ''));
    t.is(fixed?.code, 0, fixed?.message);
  },
);

/** Writes a network as it is prepared for TensorRT, and returns the file. */
function prepared(name: string, published: Uint8Array): string {
  const file = path.join(networks.folder, `${name}.onnx`);
  writeFileSync(file, Buffer.concat([...compileOnnx(published, undefined, 'tensorrt').pieces]));
  return file;
}

withStandIns('a small network of each structure becomes one engine on each architecture', async (t) => {
  const { silueta, ...others } = structures;
  const tasks = Object.entries(others).flatMap(([name, make]) => {
    const network = { file: prepared(name, make()), width: 64, height: 64, batches: [2, 4, 8] };
    return ['sm86', 'sm89', 'sm120'].map((target) => ({ ...network, name, target }));
  });
  const file = prepared('silueta', silueta());
  const built = await build(t, [...tasks, { file, width: 64, height: 64, batches: [], target: 'sm89' }]);
  if (!built) return;
  const refused = built.at(-1);
  for (const [at, { code, message, engine }] of built.slice(0, -1).entries()) {
    const { name = '' } = tasks[at] ?? {};
    t.is(code, 0, `${name}: ${message}`);
    // MODNet and BiRefNet are prepared for one image at a time.
    await isOneEngine(t, engine, ['IS-Net', 'U²-Net'].includes(name) ? 'dimParam' : 'dimValue');
  }
  t.regex(
    refused?.message ?? '',
    /^The engine was not built: the network has operators that the GPU does not run/,
  );
  t.regex(refused?.message ?? '', /CUTOUT_MODEL/);
});

withStandIns(
  'deformable convolutions become a part of the engine, of any size and float format',
  async (t) => {
    const layer = decomposedNetwork({ kernel: [2, 3], pad: 2, dilation: 2, groups: 2 });
    const half = deformableNetwork({ precision: 'fp16', kind: 'shifted' });
    const float = deformableNetwork({ precision: 'fp32', kind: 'shifted', operatorSet: 22 });
    const published = path.join(networks.folder, 'published.onnx');
    writeFileSync(published, half);
    const free = { width: 64, height: 64, batches: [], target: 'sm89' };
    const built = await build(t, [
      { file: prepared('layer', layer), width: WIDTH, height: HEIGHT, batches: [], target: 'sm89' },
      { ...free, file: prepared('half', half) },
      { ...free, file: prepared('float', float) },
      { ...free, file: published },
    ]);
    if (!built) return;
    // As it was published the provider does not take it.
    t.not(built.at(-1)?.code, 0);
    for (const { code, message, engine } of built.slice(0, -1)) {
      t.is(code, 0, message);
      await isOneEngine(t, engine, 'dimValue');
    }
  },
);

const modelsDir = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
for (const [name, side] of [
  ['isnet', 1024],
  ['u2net', 320],
] as const) {
  const source = path.join(modelsDir, name, 'source.onnx');
  const absent = existsSync(source) ? undefined : `${source} is not there, so no engine of it was built`;
  unless(missing ?? absent, test.serial)(
    `${name} as published becomes one engine for 1 to 8 images`,
    async (t) => {
      const network = { width: side, height: side, batches: [2, 4, 8], target: 'sm89' };
      const file = prepared(name, await readFile(source));
      for (const { code, message, engine } of (await build(t, [{ ...network, file }])) ?? []) {
        t.is(code, 0, message);
        await isOneEngine(t, engine);
      }
    },
  );
}
