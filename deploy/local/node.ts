import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../../bench/lib/paths.ts';
import { processSettings } from '../../scripts/setup/process.js';

export interface NodeOptions {
  readonly name: string;
  readonly port: number;
  /** Folder of the cluster, with the node's own data folder and log. */
  readonly folder: string;
  /** CUTOUT_… settings; those of the environment are not passed on. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Time limit of a start, loading and warm-up of the network included. */
const startMs = 120_000;

/** One `cutout serve` on loopback. */
export class Node {
  readonly port: number;
  readonly url: string;
  readonly log: string;
  readonly #options: NodeOptions;
  #child: ChildProcess | undefined;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.port = options.port;
    this.url = `http://127.0.0.1:${options.port}`;
    this.log = path.join(options.folder, `${options.name}.log`);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when it is ready. Rejects with the end of its log if it ends before. */
  async start(): Promise<void> {
    const { name, port, folder, settings } = this.#options;
    const data = path.join(folder, name);
    mkdirSync(data, { recursive: true });
    const surroundings = Object.entries(process.env).filter(([variable]) => !variable.startsWith('CUTOUT_'));
    const log = openSync(this.log, 'a');
    const child = spawn(process.execPath, [path.join(root, 'bin', 'cutout.js'), 'serve', '--no-pull'], {
      env: {
        ...Object.fromEntries(surroundings),
        ...processSettings(),
        ...settings,
        CUTOUT_DATA_DIR: data,
        CUTOUT_HOST: '127.0.0.1',
        CUTOUT_PORT: String(port),
      },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    for (const until = performance.now() + startMs; ; await sleep(50)) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${name} ended: ${readFileSync(this.log, 'utf8').slice(-2000)}`);
      const answer = await fetch(`${this.url}/health/ready`).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer?.status === 200) return;
      if (performance.now() > until) throw new Error(`${name} is not ready after ${startMs / 1000} s`);
    }
  }

  /** SIGKILL, without an orderly end. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** Finishes its requests, then ends. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
}
