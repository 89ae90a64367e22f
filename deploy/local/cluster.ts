import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../../bench/lib/freePort.ts';
import { type Nginx, nginxMissing, startNginx } from './nginx.ts';
import { Node } from './node.ts';
import { type Postgres, postgresMissing, startPostgres } from './postgres.ts';
import { type RedisProcess, redisMissing, startRedis } from './redis.ts';

export interface ClusterOptions {
  readonly nodes: number;
  /** Port of the balancer; default: a free one. */
  readonly port?: number;
  /** CUTOUT_… settings of every node besides those that make them a cluster. */
  readonly settings: Readonly<Record<string, string>>;
  /** Receives progress messages. */
  readonly say: (line: string) => void;
}

/** Why no cluster can be started here; undefined if one can. */
export const clusterMissing =
  [postgresMissing, redisMissing, nginxMissing].filter((each) => each !== undefined).join(' ') || undefined;

/** Nodes behind nginx that share PostgreSQL and Redis: all on loopback, and all removed by `stop`. */
export class Cluster {
  readonly url: string;
  readonly nodes: readonly Node[];
  readonly postgres: Postgres;
  readonly databaseUrl: string;
  readonly redis: RedisProcess;
  /** Of the local account, on every node. */
  readonly key: string;
  readonly #parts: readonly (() => Promise<unknown>)[];

  private constructor(
    parts: Pick<Cluster, 'url' | 'nodes' | 'postgres' | 'databaseUrl' | 'redis' | 'key'>,
    close: readonly (() => Promise<unknown>)[],
  ) {
    this.url = parts.url;
    this.nodes = parts.nodes;
    this.postgres = parts.postgres;
    this.databaseUrl = parts.databaseUrl;
    this.redis = parts.redis;
    this.key = parts.key;
    this.#parts = close;
  }

  /** Resolves when every node is ready. After a failure everything started is stopped. */
  static async start({ nodes: count, port, settings, say }: ClusterOptions): Promise<Cluster> {
    const parts: (() => Promise<unknown>)[] = [];
    try {
      const folder = mkdtempSync(path.join(tmpdir(), 'cutout-cluster-'));
      parts.unshift(async () => rmSync(folder, { recursive: true, force: true }));
      say('PostgreSQL and Redis …');
      const postgres = await startPostgres();
      parts.unshift(() => postgres.remove());
      const redis = await startRedis(['--maxmemory-policy', 'noeviction']);
      parts.unshift(() => redis.remove());
      const databaseUrl = await postgres.createDatabase();

      const key = `cutout_${randomBytes(20).toString('hex')}`;
      const nodes: Node[] = [];
      for (let number = 1; number <= count; number++)
        nodes.push(
          new Node({
            name: `node-${number}`,
            port: await freePort(),
            folder,
            settings: {
              // All share one machine: each gets a part of it.
              CUTOUT_WORKERS: '1',
              CUTOUT_THREADS: '1',
              ...settings,
              CUTOUT_DATABASE_URL: databaseUrl,
              CUTOUT_REDIS_URL: redis.url,
              CUTOUT_API_KEY: key,
              CUTOUT_PROXIES: '1',
            },
          }),
        );
      say(`${count} nodes …`);
      parts.unshift(() => Promise.all(nodes.map((node) => node.stop())));
      await Promise.all(nodes.map((node) => node.start()));
      const front: Nginx = await startNginx(
        port ?? (await freePort()),
        nodes.map((node) => node.port),
      );
      parts.unshift(() => front.stop());
      return new Cluster({ url: front.url, nodes, postgres, databaseUrl, redis, key }, parts);
    } catch (error) {
      for (const end of parts) await end().catch(() => {});
      throw error;
    }
  }

  /** Stops everything in dependency order: front, nodes, stores. */
  async stop(): Promise<void> {
    for (const end of this.#parts) await end();
  }
}
