import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../bench/lib/freePort.ts';

/** PostgreSQL on loopback, in a separate folder, which `remove` deletes. */
export interface Postgres {
  /** URL of an empty database of its own, as the server's only user. */
  createDatabase(): Promise<string>;
  /** Ends every connection at once, as an operator's restart does, and starts again. */
  restart(): Promise<void>;
  /** SIGKILL to the server and all its processes; it recovers at the next `start`. */
  kill(): Promise<void>;
  /** SIGINT: ends every connection and writes everything to disk. */
  stop(): Promise<void>;
  /** Resolves when it accepts connections. */
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** Debian keeps each version's programs in a separate folder. */
function programs(): string | undefined {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return versions
    .map((version) => path.join(root, version, 'bin'))
    .find((bin) => existsSync(`${bin}/initdb`));
}

const bin = programs();

/** Why PostgreSQL cannot be used; undefined if it can. */
export const postgresMissing = bin ? undefined : 'PostgreSQL is not installed here (Debian: postgresql).';

/** PostgreSQL refuses to run as root, so it runs as the user nobody there. */
const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<Postgres> {
  if (bin === undefined) throw new Error(postgresMissing);
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-postgres-'));
  if (nobody.uid !== undefined) chownSync(folder, nobody.uid, nobody.gid);
  const data = path.join(folder, 'data');
  const made = spawnSync(
    path.join(bin, 'initdb'),
    ['-D', data, '-U', 'cutout', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
    { ...nobody, cwd: folder, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);

  const port = await freePort();
  const urlOf = (database: string) => `postgres://cutout@127.0.0.1:${port}/${database}`;
  const all: Readonly<Record<string, string>> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    // Must survive the death of processes, not of the machine: nothing here cuts the power.
    fsync: 'off',
    deadlock_timeout: '100ms',
    shared_buffers: '16MB',
    max_connections: '60',
    ...settings,
  };
  let server: ChildProcess | undefined;
  let said = '';

  const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const run = () => {
    const child = spawn(path.join(bin, 'postgres'), ['-D', data, ...options], {
      ...nobody,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4000);
    });
    return child;
  };
  const start = async () => {
    server = run();
    for (const until = performance.now() + 30_000; ; await sleep(30)) {
      const client = new pg.Client({ connectionString: urlOf('postgres') });
      client.on('error', () => {});
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        if (performance.now() > until)
          throw new Error(`PostgreSQL does not start: ${said}`, { cause: error });
        // Processes of a killed server may still exist.
        if (server.exitCode !== null) server = run();
      }
    }
  };
  const end = async (signal: NodeJS.Signals) => {
    const child = server;
    server = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };

  let databases = 0;
  await start();
  return {
    start,
    stop: () => end('SIGINT'),
    // Its children end by themselves when they notice.
    kill: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGINT');
      await start();
    },
    createDatabase: async () => {
      const client = new pg.Client({ connectionString: urlOf('postgres') });
      await client.connect();
      const name = `books_${++databases}`;
      await client.query(`CREATE DATABASE ${name}`);
      await client.end();
      return urlOf(name);
    },
    remove: async () => {
      await end('SIGQUIT');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
