import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { freePort } from '../../bench/lib/freePort.ts';
import { programOf } from './programs.ts';

const program = programOf('redis-server');

/** Why Redis cannot be used; undefined if it can. */
export const redisMissing = program ? undefined : 'Redis is not installed here (Debian: redis-server).';

/** One command over a connection of its own. */
export async function askRedis(url: string, ...command: string[]): Promise<unknown> {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false, connectTimeout: 1000 } });
  client.on('error', () => {});
  try {
    await client.connect();
    return await client.sendCommand(command);
  } finally {
    if (client.isOpen) client.destroy();
  }
}

/** Redis on loopback, in a separate folder, without persistence: `kill` loses everything. */
export interface RedisProcess {
  readonly url: string;
  /** Resolves when it answers. */
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Suspends it with its connections open, until `resume`. */
  pause(): void;
  resume(): void;
  remove(): Promise<void>;
}

export async function startRedis(args: readonly string[] = [], password = ''): Promise<RedisProcess> {
  const port = await freePort();
  const url = `redis://${password === '' ? '' : `:${password}@`}127.0.0.1:${port}`;
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-redis-'));
  const all = [
    ...['--port', String(port), '--bind', '127.0.0.1'],
    ...['--save', '', '--appendonly', 'no', '--databases', '1000'],
    ...(password === '' ? [] : ['--requirepass', password]),
    ...args,
  ];
  let child: ChildProcess | undefined;
  const start = async () => {
    if (program === undefined) throw new Error(redisMissing);
    const started = spawn(program, all, { cwd: folder, stdio: 'ignore' });
    child = started;
    for (const until = performance.now() + 15_000; ; await sleep(10)) {
      try {
        await askRedis(url, 'PING');
        return;
      } catch (error) {
        if (started.exitCode !== null || performance.now() > until)
          throw new Error('Redis does not start', { cause: error });
      }
    }
  };
  const kill = async () => {
    const running = child;
    child = undefined;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  };
  await start();
  return {
    url,
    start,
    kill,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    remove: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
