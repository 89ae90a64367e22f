import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { inBuild, root } from './paths.js';
import { shown } from './progress.js';

/** A set-up failure that needs no stack trace: the sentence says what to do. */
export class SetupError extends Error {}

/**
 * sha256 over names and contents of files; folders are walked in name order. Reads synchronously: nothing else runs
 * meanwhile, and a few hundred small files take half the time that way.
 */
export async function hashFiles(paths, extra = '') {
  const hash = createHash('sha256').update(extra);
  const add = (file) => {
    hash.update(path.relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  };
  const walk = (entry) => {
    const children = readdirSync(entry, { withFileTypes: true });
    for (const child of children.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const full = path.join(entry, child.name);
      if (child.name === 'node_modules') continue;
      if (child.isDirectory()) walk(full);
      else if (child.isFile()) add(full);
    }
  };
  for (const entry of paths.map((p) => path.resolve(root, p))) {
    const found = statSync(entry, { throwIfNoEntry: false });
    if (!found) hash.update(`${entry} is missing`);
    else if (found.isDirectory()) walk(entry);
    else add(entry);
  }
  return hash.digest('hex');
}

const stampFile = (name) => inBuild('stamps', name);

async function readStamp(name) {
  return readFile(stampFile(name), 'utf8').catch(() => '');
}

/** Written last and atomically, so that an interrupted step runs again. */
async function writeStamp(name, value) {
  await mkdir(inBuild('stamps'), { recursive: true });
  const temporary = `${stampFile(name)}.${process.pid}`;
  await writeFile(temporary, value);
  await rename(temporary, stampFile(name));
}

/**
 * Runs one step of set-up unless its inputs are unchanged and its products still exist.
 * @param {{name: string, title: string, inputs: () => Promise<string>, products: string[],
 *          work: (progress: (text: string) => void) => Promise<void>}} step
 * @returns {Promise<boolean>} whether anything was done
 */
export async function runStep(step) {
  const stamp = await step.inputs();
  if ((await readStamp(step.name)) === stamp && step.products.every((p) => existsSync(p))) return false;
  await shown(step.title, step.work);
  await writeStamp(step.name, stamp);
  return true;
}

/**
 * Waits for concurrent work to end, also if some of it fails: nothing keeps running after an
 * error, and completed products stay. Rejects with the first failure.
 */
export async function together(works) {
  for (const outcome of await Promise.allSettled(works)) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
}

/**
 * Runs a program; its output goes to build/logs/<log>.log and the last line to `progress`.
 * Rejects with a SetupError that quotes the end of the output.
 */
export async function runProgram(log, command, args, { cwd = root, env = {}, progress = () => {} } = {}) {
  await mkdir(inBuild('logs'), { recursive: true });
  const file = inBuild('logs', `${log}.log`);
  const out = createWriteStream(file);
  let tail = '';
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      out.write(chunk);
      tail = (tail + chunk).slice(-4000);
      progress(tail.trimEnd().split('\n').at(-1) ?? '');
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new SetupError(`${command} could not be started: ${error.message}`)));
    child.on('close', (status, signal) => resolve(status ?? signal));
  });
  out.end();
  if (code !== 0) {
    throw new SetupError(
      `\`${path.basename(command)} ${args.join(' ')}\` failed (${code}). The end of ${path.relative(root, file)}:\n\n${tail.trim()}`,
    );
  }
}
