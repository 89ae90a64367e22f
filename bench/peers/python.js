// An adapter (bench/peers/README.md) for a program that is a Python library: `worker`, a file beside the adapter, runs in a
// Python process of its own that keeps the network between images. It reads lines of JSON {"file", "out"}, writes the PNG of
// the file to out, and answers each with {"ms"}; the first line of JSON that it prints is {"ready"}. worker_loop.py serves that.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** `program`: the Python that has the library; `worker`: address of the script; `args`: of the script. */
export function pythonPeer({ program, worker, args }) {
  let child;
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

  async function run(file) {
    const out = path.join(folder, 'result.png');
    child.stdin.write(`${JSON.stringify({ file, out })}\n`);
    const { ms } = await answer();
    return { png: await readFile(out), ms };
  }

  return {
    async prepare({ warmUp }) {
      folder = await mkdtemp(path.join(tmpdir(), 'cutout-peer-'));
      child = spawn(program, [fileURLToPath(worker), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
      // Writing to a worker that has ended is reported by `answer`.
      child.stdin.on('error', () => {});
      lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      await Promise.race([
        answer(),
        once(child, 'error').then(([error]) => {
          throw new Error(`${program} cannot be started: ${error.message}`);
        }),
      ]);
      await run(warmUp);
    },
    run,
    async close() {
      child?.stdin.end();
      if (folder) await rm(folder, { recursive: true, force: true });
    },
  };
}
