// Adapter (bench/peers/README.md) for rembg as a library, in a Python process of its own, with the network kept between
// images. `python3` must have rembg installed, or be named by REMBG_PYTHON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const program = process.env.REMBG_PYTHON ?? 'python3';
const model = process.env.REMBG_MODEL ?? 'isnet-general-use';

export const about = {
  title: `rembg in process (${model})`,
  licence: 'MIT',
  weights: model === 'isnet-general-use' ? 'isnet' : model,
};

let worker;
let lines;
let folder;

/** The next line of JSON of the worker; rejects if it ends before. */
async function answer() {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${program} ended without an answer`);
    if (value.startsWith('{')) return JSON.parse(value);
  }
}

export async function prepare({ warmUp }) {
  folder = await mkdtemp(path.join(tmpdir(), 'cutout-peer-'));
  worker = spawn(program, [fileURLToPath(new URL('worker.py', import.meta.url)), model], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // Writing to a worker that has ended is reported by `answer`.
  worker.stdin.on('error', () => {});
  lines = createInterface({ input: worker.stdout })[Symbol.asyncIterator]();
  await Promise.race([
    answer(),
    once(worker, 'error').then(([error]) => {
      throw new Error(`${program} cannot be started: ${error.message}`);
    }),
  ]);
  await run(warmUp);
}

export async function run(file) {
  const out = path.join(folder, 'result.png');
  worker.stdin.write(`${JSON.stringify({ file, out })}\n`);
  const { ms } = await answer();
  return { png: await readFile(out), ms };
}

export async function close() {
  worker?.stdin.end();
  if (folder) await rm(folder, { recursive: true, force: true });
}
