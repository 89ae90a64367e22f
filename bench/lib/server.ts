import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from './freePort.ts';
import { main, modelsFolder, root } from './paths.ts';

const KEY = 'bench-key-0123456789abcdef0123456789';

/** Resident memory of a process in MB (10^6): current, and peak since the last `resetPeak`. */
export async function memory(pid: number): Promise<{ readonly now: number; readonly peak: number }> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) * 1024) / 1e6;
  return { now: field('VmRSS'), peak: field('VmHWM') };
}

export const resetPeak = (pid: number): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, '5');

/** Unit of the times in /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node.js supports. */
const TICK_MS = 10;

/** Processor time of a process so far, all threads, in milliseconds. */
export async function processorMs(pid: number): Promise<number> {
  const fields = ((await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1] ?? '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Busy time of all cores of the machine so far, in milliseconds, including time taken by its host. */
export async function busyMs(): Promise<number> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    line.match(/\d+/g)?.map(Number) ?? [];
  return (user + nice + system + irq + softirq + steal) * TICK_MS;
}

interface OwnServer {
  readonly url: string;
  readonly key: string;
  readonly pid: number;
  /** From the start of the process to the first 200 of /health/ready. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Environment that scripts/start.js sets for the server. */
async function processSettings(): Promise<NodeJS.ProcessEnv> {
  const file = path.join(root, 'scripts', 'setup', 'process.js');
  const { processSettings: settings } = (await import(file)) as { processSettings: () => NodeJS.ProcessEnv };
  return settings();
}

/** A separate server on loopback with an empty data folder and no limit that a bench could reach. */
export async function startServer(env: NodeJS.ProcessEnv = {}): Promise<OwnServer> {
  const port = await freePort();
  const data = mkdtempSync(path.join(tmpdir(), 'cutout-bench-'));
  const settings = await processSettings();
  const started = performance.now();
  const child = spawn(process.execPath, [main, 'serve', '--no-pull'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...settings,
      ...process.env,
      CUTOUT_PORT: String(port),
      CUTOUT_HOST: '127.0.0.1',
      CUTOUT_DATA_DIR: data,
      CUTOUT_MODELS_DIR: modelsFolder(),
      CUTOUT_API_KEY: KEY,
      CUTOUT_RATE_LIMIT: '0',
      ...env,
    },
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-4000);
  });
  const ended = once(child, 'close');
  const url = `http://127.0.0.1:${port}`;
  // A bench that is stopped leaves neither a server nor its folder behind.
  const drop = (): void => {
    child.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true });
  };
  process.once('exit', drop);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    process.removeListener('exit', drop);
    rmSync(data, { recursive: true, force: true });
  };
  for (;;) {
    if (child.exitCode !== null || child.pid === undefined) {
      await stop();
      throw new Error(`the server ended while starting:\n${errors}`);
    }
    const ready = await fetch(`${url}/health/ready`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return { url, key: KEY, pid: child.pid, readyMs: performance.now() - started, stop };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
