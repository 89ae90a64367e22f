import { existsSync, readFileSync, rmSync } from 'node:fs';
import { cpus } from 'node:os';
import path from 'node:path';
import { fetchedHeader, fetchHeaders, findHeaders } from './headers.js';
import { inBuild, inRoot, main, root } from './paths.js';
import { buildSqlite, product as sqliteProduct } from './sqlite.js';
import { hashFiles, runProgram, runStep } from './step.js';
import { checkToolchain } from './toolchain.js';

const addon = (name) => inBuild('native', 'Release', `${name}.node`);

/** Things a build depends on besides the files: another Node or processor means another build. */
const machine = `${process.version} ${process.platform} ${process.arch}`;

async function installPackages() {
  await runStep({
    name: 'packages',
    title: 'install packages from the lockfile',
    inputs: () => hashFiles(['package-lock.json', '.npmrc'], machine),
    products: [inRoot('node_modules', '.package-lock.json')],
    work: (progress) =>
      runProgram('packages', 'npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], { progress }),
  });
}

/** CMake keeps absolute paths: in a folder that was copied or moved it would look at the sources of the old place. */
function forgetBuildOfAnotherFolder() {
  const cache = inBuild('native', 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const built = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'))?.[1];
  if (built !== path.resolve(root)) rmSync(inBuild('native'), { recursive: true });
}

async function buildAddon({ tests }) {
  let headers = findHeaders();
  if (!headers) {
    await runStep({
      name: 'headers',
      title: "fetch ONNX Runtime's headers from Debian",
      inputs: async () => '1',
      products: [fetchedHeader],
      work: fetchHeaders,
    });
    headers = path.dirname(fetchedHeader);
  }
  forgetBuildOfAnotherFolder();
  const target = (name, sources) =>
    runStep({
      name: `addon-${name}`,
      title: name === 'cutout' ? 'build the native addon' : 'build the test addon',
      inputs: () => hashFiles(['CMakeLists.txt', 'native', ...sources], `${machine} ${headers}`),
      products: [addon(name)],
      work: (progress) =>
        runProgram(
          `addon-${name}`,
          process.execPath,
          [
            inRoot('node_modules', 'cmake-js', 'bin', 'cmake-js'),
            'build',
            '--out',
            inBuild('native'),
            '--target',
            name,
            '--parallel',
            String(cpus().length),
            `--CDONNXRUNTIME_INCLUDE_DIR=${headers}`,
          ],
          { progress },
        ),
    });
  await target('cutout', ['binding']);
  if (tests) await target('cutout_test', ['binding', 'test/native', 'test/stress', 'test/faults']);
}

/**
 * Brings a clone to the point where `build/ts/src/main.js` runs. Every step is skipped while its inputs
 * are unchanged, and an interrupted one starts over.
 * @param {{tests: boolean}} options whether the test addon is needed too
 */
export async function setup({ tests }) {
  const packagesKnown = existsSync(inRoot('node_modules', '.package-lock.json'));
  if (!packagesKnown || !existsSync(addon('cutout'))) checkToolchain();
  await installPackages();
  await buildAddon({ tests });
  await runStep({
    name: 'sqlite',
    title: 'build SQLite',
    inputs: () => hashFiles(['node_modules/better-sqlite3/package.json'], machine),
    products: [sqliteProduct],
    work: buildSqlite,
  });
  await runStep({
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
  await runStep({
    name: 'pages',
    title: 'build the pages',
    // The pages share types with the server.
    inputs: () => hashFiles(['package-lock.json', 'web', 'src/http/route/console/api.ts']),
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
}
