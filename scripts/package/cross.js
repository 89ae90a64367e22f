import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { provideHeaders } from '../setup/headers/index.js';
import { fetchNode } from '../setup/nodejs.js';
import { inBuild, inRoot, root } from '../setup/paths.js';
import { ownRelease } from '../setup/releases.js';
import { hashFiles, runProgram, runStep } from '../setup/step.js';
import { generator } from '../setup/toolchain.js';

const compiler = 'aarch64-linux-gnu-g++';
const folder = inBuild('cross', 'linux-arm64');
const addon = path.join(folder, 'Release', 'cutout.node');

/** Debian's folder of the C and C++ libraries for arm64. */
const libraries = '/usr/aarch64-linux-gnu/lib';
/** What an emulated program finds in place of this machine's files. */
const emulatedRoot = inBuild('cross', 'root-arm64');

/** Programs of test/stress that compare pixel loops and convolutions in 8 bits with their scalar versions. */
const stressPrograms = ['kernels_stress', 'png_stress', 'low_precision_stress'];

export const stressProgram = (name) => path.join(folder, name);

const isInstalled = (program) =>
  ['/usr/bin', '/usr/local/bin'].some((each) => existsSync(path.join(each, program)));

/** What is missing to build for arm64 on another machine, by Debian's packages; or ''. */
export const missingToBuildArm64 = () => (isInstalled(compiler) ? '' : 'g++-aarch64-linux-gnu');

/** What is missing to build for arm64 and run it here; or ''. */
export const missingForArm64 = () =>
  missingToBuildArm64() || (isInstalled('qemu-aarch64') ? '' : 'qemu-user');

/** Builds the addon for arm64, and the stress programs, with Debian's cross compiler. Resolves with the addon's file. */
export async function crossBuild() {
  const headers = await provideHeaders();
  const nodeApi = [
    inRoot('node_modules', 'node-api-headers', 'include'),
    inRoot('node_modules', 'node-addon-api'),
  ];
  const configure = [
    ...['-S', root, '-B', folder, '-G', generator(), '-DCMAKE_BUILD_TYPE=Release'],
    ...['-DCMAKE_SYSTEM_NAME=Linux', '-DCMAKE_SYSTEM_PROCESSOR=aarch64', `-DCMAKE_CXX_COMPILER=${compiler}`],
    ...['-DCMAKE_CXX_FLAGS=-DBUILDING_NODE_EXTENSION', `-DCMAKE_JS_INC=${nodeApi.join(';')}`],
    `-DONNXRUNTIME_INCLUDE_DIR=${headers}`,
  ];
  await runStep({
    name: 'cross-arm64',
    title: 'build the addon for arm64',
    inputs: () =>
      hashFiles(['CMakeLists.txt', 'native', 'binding', 'test/scalar', 'test/stress', ...nodeApi], headers),
    products: [addon, ...stressPrograms.map(stressProgram)],
    work: async (progress) => {
      await runProgram('cross-configure', 'cmake', configure, { progress });
      const targets = ['cutout', ...stressPrograms];
      const build = ['--build', folder, '--target', ...targets, '--parallel', String(availableParallelism())];
      await runProgram('cross-build', 'cmake', build, { progress });
    },
  });
  return addon;
}

/** The arm64 Node.js that npm carries. Resolves with a command line that runs it on this machine. */
export async function emulatedNode() {
  const target = inBuild('cross', 'node-arm64');
  const file = path.join(target, 'bin', 'node');
  if (!existsSync(file)) await fetchNode(ownRelease, target, () => {}, 'arm64');
  return emulated(file);
}

/** The processor that is emulated, by qemu's name; /proc/cpuinfo of two of its cores. */
const processor = 'neoverse-n1';
const processors = [0, 1]
  .map((number) =>
    [
      `processor\t: ${number}`,
      'BogoMIPS\t: 50.00',
      'Features\t: fp asimd',
      'CPU implementer\t: 0x41',
      'CPU architecture: 8',
      'CPU variant\t: 0x3',
      'CPU part\t: 0xd0c',
      'CPU revision\t: 1\n\n',
    ].join('\n'),
  )
  .join('');

/**
 * A command line that runs an arm64 program on this machine. ONNX Runtime for arm64 crashes when /proc/cpuinfo is another
 * processor's, which qemu 7.2 passes on from this machine.
 * @param {string} file
 * @param {string} cpu of qemu's names
 */
export function emulated(file, cpu = processor) {
  mkdirSync(path.join(emulatedRoot, 'proc'), { recursive: true });
  writeFileSync(path.join(emulatedRoot, 'proc', 'cpuinfo'), processors);
  const link = path.join(emulatedRoot, 'lib');
  if (!existsSync(link)) symlinkSync(libraries, link);
  return ['qemu-aarch64', '-L', emulatedRoot, '-cpu', cpu, file];
}
