import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { main, root } from '../../scripts/setup/paths.js';
import { processSettings } from '../../scripts/setup/process.js';

const KEY = 'bench-key-0123456789abcdef0123456789';

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

/** Resident memory of a process in MB: now, and the highest since the last `resetPeak`. */
export async function memory(pid) {
  const text = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024;
  return { now: field('VmRSS'), peak: field('VmHWM') };
}

export const resetPeak = (pid) => writeFile(`/proc/${pid}/clear_refs`, '5');

/**
 * A server of its own on loopback with a fresh data folder, no limits on credits that a bench could meet.
 * @returns {Promise<{url: string, key: string, pid: number, readyMs: number, cutout: Function, stop: Function}>}
 */
export async function startServer(env = {}) {
  const port = await freePort();
  const data = mkdtempSync(path.join(tmpdir(), 'cutout-bench-'));
  const started = performance.now();
  const child = spawn(process.execPath, [main, 'serve'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...processSettings(),
      ...process.env,
      CUTOUT_PORT: String(port),
      CUTOUT_HOST: '127.0.0.1',
      CUTOUT_DATA_DIR: data,
      CUTOUT_MODELS_DIR: process.env.CUTOUT_MODELS_DIR ?? path.join(root, 'data', 'models'),
      CUTOUT_API_KEY: KEY,
      ...env,
    },
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors = (errors + chunk).slice(-4000);
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended while starting:\n${errors}`);
    const ready = await fetch(`${url}/health/ready`)
      .then((r) => r.ok)
      .catch(() => false);
    if (ready) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const readyMs = performance.now() - started;

  /** One whole request over HTTP. Throws unless the answer is 200. */
  const cutout = async (photo, fields = {}) => {
    const form = new FormData();
    form.set('image_file', new Blob([photo]), 'photo.jpg');
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    const begin = performance.now();
    const response = await fetch(`${url}/v1.0/cutout`, {
      method: 'POST',
      headers: { 'X-Api-Key': KEY },
      body: form,
    });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200) throw new Error(`${response.status} ${body.subarray(0, 300)}`);
    return { ms: performance.now() - begin, body, headers: response.headers };
  };
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
  };
  return { url, key: KEY, pid: child.pid, readyMs, cutout, stop };
}
