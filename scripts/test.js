// npm test: set up what is not set up yet, then run every check. `npm test -- <ava arguments>` runs AVA only.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { clangFormat } from './format/clang.js';
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { inRoot, main, root } from './setup/paths.js';
import { processSettings } from './setup/process.js';
import { reportFailure } from './setup/report.js';

/** Runs a program with its output on this terminal; resolves to whether it ended with 0. */
function run(command, args, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(false);
    });
    child.on('close', (code) => resolve(code === 0));
  });
}

const node = (script, ...args) =>
  run(process.execPath, [inRoot('node_modules', ...script.split('/')), ...args]);

async function stage(title, work) {
  const started = Date.now();
  console.log(`\n── ${title}`);
  const ok = await work();
  console.log(`── ${title}: ${ok ? 'ok' : 'FAILED'} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  return ok;
}

await onSupportedNode();

const only = process.argv.slice(2);

try {
  console.log('── set-up');
  await setup({ tests: true });
} catch (error) {
  reportFailure(error);
  process.exit();
}

const ava = () =>
  run(
    process.execPath,
    [inRoot('node_modules', 'ava', 'entrypoints', 'cli.mjs'), ...only],
    processSettings(),
  );

if (only.length > 0) {
  process.exitCode = (await ava()) ? 0 : 1;
} else {
  if (!existsSync(inRoot('..', 'shared', 'data'))) {
    console.log('\n../shared/data is not here: the tests on photographs will be skipped.');
  }
  // Everything runs even after a failure: one call tells all that is wrong.
  const results = [
    await stage('format and lint', () => node('@biomejs/biome/bin/biome', 'ci', '--reporter=summary', '.')),
    await stage('types of the pages', () => node('typescript/bin/tsc', '-p', 'web')),
    await stage('C++ format', async () => clangFormat({ write: false })),
    await stage('network', () =>
      run(process.execPath, ['--enable-source-maps', main, 'models', 'pull'], {
        CUTOUT_MODELS_DIR: process.env.CUTOUT_TEST_MODELS ?? inRoot('data', 'models'),
      }),
    ),
    await stage('tests', ava),
  ];
  process.exitCode = results.every(Boolean) ? 0 : 1;
}
