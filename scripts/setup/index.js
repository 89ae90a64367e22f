import { existsSync } from 'node:fs';
import { addon, buildNative } from './native.js';
import { inBuild, inRoot, machine, main } from './paths.js';
import { hashFiles, runProgram, runStep, together } from './step.js';
import { checkSystem } from './system.js';
import { checkToolchain } from './toolchain.js';

const installPackages = () =>
  runStep({
    name: 'packages',
    title: 'install packages from the lockfile',
    inputs: () => hashFiles(['package-lock.json', '.npmrc'], machine),
    products: [inRoot('node_modules', '.package-lock.json')],
    work: (progress) =>
      runProgram('packages', 'npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], { progress }),
  });

const compileTypeScript = () =>
  runStep({
    name: 'typescript',
    title: 'compile TypeScript',
    inputs: () => hashFiles(['tsconfig.json', 'package-lock.json', 'src', 'test', 'tools', 'bench']),
    products: [main],
    work: (progress) =>
      runProgram(
        'typescript',
        process.execPath,
        [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'],
        { progress },
      ),
  });

const buildPages = () =>
  runStep({
    name: 'pages',
    title: 'build the pages',
    // The pages share types with the server.
    inputs: () =>
      hashFiles(['package-lock.json', 'web', 'src/http/route/console/api.ts', 'src/image/heif/libheif.ts']),
    products: [inBuild('web', 'index.html'), inBuild('web', 'console.html')],
    work: (progress) =>
      runProgram(
        'pages',
        process.execPath,
        [
          inRoot('node_modules', 'vite', 'bin', 'vite.js'),
          'build',
          '--config',
          inRoot('web', 'vite.config.js'),
        ],
        { progress },
      ),
  });

/**
 * Sets up a clone until `build/ts/src/main.js` can run. Every step is skipped while its inputs
 * are unchanged, and an interrupted one is repeated. Independent steps run in parallel.
 * @param {{tests?: boolean, kernels?: boolean}} options whether the test addon is needed too, and the kernels for a GPU where
 *   there is none
 */
export async function setup({ tests = false, kernels = tests } = {}) {
  const packagesKnown = existsSync(inRoot('node_modules', '.package-lock.json'));
  if (!packagesKnown || !existsSync(addon('cutout'))) {
    checkSystem();
    checkToolchain();
  }
  const packages = installPackages();
  await together([
    packages,
    buildNative({ tests, kernels, packages }),
    packages.then(() => together([compileTypeScript(), buildPages()])),
  ]);
}
