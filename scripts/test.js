// npm test: sets up what is missing, then runs every check. `npm test -- <ava arguments>` runs AVA only.
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { clangFormat } from './format/clang.js';
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { inBuild, inRoot, main, root } from './setup/paths.js';
import { reportFailure } from './setup/report.js';
import { testEnvironment } from './test/environment.js';
import { collectFailures, failureLines } from './test/failures.js';
import { collectLeftOut, tellLeftOut } from './test/leftOut.js';

/**
 * Runs a program with its output on this terminal; resolves to whether its exit status was 0. `read` is given the output as
 * a stream that it may read beside.
 */
function run(command, args, env = process.env, read = undefined) {
  return new Promise((resolve) => {
    const stdio = ['inherit', read ? 'pipe' : 'inherit', 'inherit'];
    const child = spawn(command, args, { cwd: root, stdio, env });
    if (read) {
      child.stdout.pipe(process.stdout, { end: false });
      read(child.stdout);
    }
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(false);
    });
    child.on('close', (code) => resolve(code === 0));
  });
}

const node = (script, ...args) =>
  run(process.execPath, [inRoot('node_modules', ...script.split('/')), ...args]);

const failed = [];

async function stage(title, work) {
  const started = Date.now();
  console.log(`\n── ${title}`);
  const ok = await work();
  if (!ok) failed.push(title);
  console.log(`── ${title}: ${ok ? 'ok' : 'FAILED'} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
}

await onSupportedNode();

const only = process.argv.slice(2);

/** What failed, for the end of a longer log (.ci/run). */
const summary = inBuild('logs', 'failed');
mkdirSync(inBuild('logs'), { recursive: true });
rmSync(summary, { force: true });
const leave = (lines) => writeFileSync(summary, `${lines.join('\n')}\n`);

try {
  console.log('── set-up');
  await setup({ tests: true });
} catch (error) {
  reportFailure(error);
  leave(['── set-up', ...String(error.message).trim().split('\n').slice(-16)]);
  process.exit();
}

const withoutCutout = (environment) =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('CUTOUT_')));

const environment = testEnvironment(process.env);

let failures = [];

// On a terminal AVA writes to it itself, with its colours and width; nothing is collected then, and its own summary of
// failures is on the screen.
const ava = () =>
  run(
    process.execPath,
    [inRoot('node_modules', 'ava', 'entrypoints', 'cli.mjs'), ...only],
    { ...environment, ...collectLeftOut() },
    process.stdout.isTTY
      ? undefined
      : (output) => {
          failures = collectFailures(output);
        },
  );

if (only.length > 0) {
  process.exitCode = (await ava()) ? 0 : 1;
  tellLeftOut();
} else {
  // Everything runs even after a failure, so that one call reports all failures.
  await stage('format and lint', () => node('@biomejs/biome/bin/biome', 'ci', '--reporter=summary', '.'));
  await stage('types of the pages', () => node('typescript/bin/tsc', '-p', 'web'));
  await stage('C++ format', async () => clangFormat({ write: false }));
  await stage('network', () =>
    // Uses the machine's own package settings, but not those of a server running on it.
    run(process.execPath, ['--enable-source-maps', main, 'models', 'pull'], {
      ...withoutCutout(process.env),
      CUTOUT_MODELS_DIR: process.env.CUTOUT_TEST_MODELS ?? inRoot('data', 'models'),
    }),
  );
  await stage('tests', ava);
  const leftOut = tellLeftOut();
  if (failed.length > 0) {
    const lines = [`── FAILED: ${failed.join(', ')}; ${leftOut} tests left out`, ...failureLines(failures)];
    leave(lines);
    console.log(`\n${lines.join('\n')}`);
    process.exitCode = 1;
  } else {
    console.log(`\n── all stages passed; ${leftOut} tests left out`);
  }
}
