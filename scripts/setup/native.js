import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { provideHeaders } from './headers/index.js';
import { findNvcc } from './nvcc.js';
import { inBuild, inRoot, machine, root } from './paths.js';
import { hashFiles, runProgram, runStep } from './step.js';
import { generator } from './toolchain.js';

const folder = inBuild('native');
export const addon = (name) => path.join(folder, 'Release', `${name}.node`);

/** The packages with the headers of Node-API. */
const nodeApi = ['node-api-headers', 'node-addon-api'].map((name) =>
  inRoot('node_modules', name, 'package.json'),
);

/** A build folder is valid for one path and one generator; CMake refuses it for others. */
export async function removeForeignBuild(folder, home = root, wanted = generator()) {
  const cache = path.join(folder, 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const text = readFileSync(cache, 'utf8');
  const cached = (name) => new RegExp(`^${name}:INTERNAL=(.*)$`, 'm').exec(text)?.[1];
  const place = cached('CMAKE_HOME_DIRECTORY');
  if (
    place === undefined ||
    path.resolve(place) !== path.resolve(home) ||
    cached('CMAKE_GENERATOR') !== wanted
  )
    await rm(folder, { recursive: true, force: true });
}

/**
 * Builds the engine with CMake directly, because the package cmake-js is not installed yet. With the flags that cmake-js
 * sets later, or everything would be compiled twice.
 */
async function compileCore(headers, progress) {
  await removeForeignBuild(folder);
  const configure = ['-S', root, '-B', folder, '-G', generator(), '-DCMAKE_BUILD_TYPE=Release'];
  const flags = ['-DCMAKE_CXX_FLAGS=-DBUILDING_NODE_EXTENSION', `-DONNXRUNTIME_INCLUDE_DIR=${headers}`];
  await runProgram('native-configure', 'cmake', [...configure, ...flags], { progress });
  const build = ['--build', folder, '--target', 'native', '--parallel', String(availableParallelism())];
  await runProgram('native-build', 'cmake', build, { progress });
}

/** Builds an addon with cmake-js. npm's `nodedir` would make it use Node.js' own headers instead of Node-API's. */
async function compileAddon(target, headers, progress) {
  await removeForeignBuild(folder);
  const cmakeJs = inRoot('node_modules', 'cmake-js', 'bin', 'cmake-js');
  const how = ['--out', folder, '--generator', generator(), '--parallel', String(availableParallelism())];
  const what = ['--target', target, `--CDONNXRUNTIME_INCLUDE_DIR=${headers}`];
  const env = { npm_config_nodedir: undefined };
  // In sequence: its `compile` keeps a configured folder, and deletes everything if that does not build.
  for (const command of ['configure', 'build'])
    await runProgram(`${target}-${command}`, process.execPath, [cmakeJs, command, ...how, ...what], {
      env,
      progress,
    });
}

/** The engine without Node-API needs no package, so it is compiled while they are installed. */
async function buildCore() {
  const headers = await provideHeaders();
  await runStep({
    name: 'native',
    title: 'compile the engine',
    inputs: () => hashFiles(['CMakeLists.txt', 'native'], `${machine} ${headers}`),
    products: [path.join(folder, 'libnative.a')],
    work: (progress) => compileCore(headers, progress),
  });
  return headers;
}

const kernelsFile = path.join(folder, 'Release', 'libcutout_cuda.so');

/** The kernels for a GPU as set-up has built them; undefined without nvcc, when a file may be there from older sources. */
export const kernelsForGpu = () => (findNvcc() === undefined ? undefined : kernelsFile);

/** What NVIDIA's driver has where it is loaded, on Linux and in its subsystem on Windows. */
const driverFiles = ['/dev/nvidiactl', '/dev/dxg'];

/**
 * Compiles the kernels for a GPU, where nvcc is installed and, unless they are `asked` for, a driver; the engine finds them
 * beside the addon.
 */
async function buildKernelsForGpu(asked) {
  if (!asked && !driverFiles.some((file) => existsSync(file))) return;
  const nvcc = findNvcc();
  if (nvcc === undefined) {
    console.log('  – the kernels for a GPU are not compiled: there is no nvcc of CUDA 13');
    return;
  }
  await runStep({
    name: 'cuda',
    title: 'compile the kernels for a GPU',
    inputs: () => hashFiles(['CMakeLists.txt', 'native'], `${machine} ${nvcc}`),
    products: [kernelsFile],
    work: async (progress) => {
      const configure = ['-S', root, '-B', folder, `-DCUTOUT_NVCC=${nvcc}`];
      await runProgram('cuda-configure', 'cmake', configure, { progress });
      await runProgram('cuda-build', 'cmake', ['--build', folder, '--target', 'cutout_cuda'], { progress });
    },
  });
}

/**
 * Builds the addon, the kernels for a GPU where there is one or with `kernels`, and with `tests` the test addon too.
 * @param {{tests: boolean, kernels: boolean, packages: Promise<unknown>}} options `packages` has the headers of Node-API
 */
export async function buildNative({ tests, kernels, packages }) {
  const headers = await buildCore();
  await packages;
  const target = (name, title, sources) =>
    runStep({
      name: `addon-${name}`,
      title,
      inputs: () => hashFiles(['CMakeLists.txt', 'native', ...nodeApi, ...sources], `${machine} ${headers}`),
      products: [addon(name)],
      work: (progress) => compileAddon(name, headers, progress),
    });
  await target('cutout', 'build the native addon', ['binding']);
  if (tests) {
    await target('cutout_test', 'build the test addon', [
      'binding',
      'test/native',
      'test/scalar',
      'test/stress',
      'test/faults',
      'test/gpu/addon.cc',
      'test/gpu/fake_driver.cc',
      'test/gpu/old_kernels.cc',
      'test/gpu/recorder',
      'test/gpu_check',
      'test/sched/addon.cc',
      'test/sched/simulation.cc',
    ]);
  }
  await buildKernelsForGpu(kernels);
}
