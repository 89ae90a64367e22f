import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import type { StoreConfig } from '../../config/store.ts';
import { messageOf } from '../../errors.ts';
import type { Database } from '../../store/database.ts';
import { migrations } from '../../store/migrations.ts';
import { openDatabase } from '../../store/open.ts';
import { type Finding, note, ok, problem } from './finding.ts';

/** Version of the schema; undefined if there is none yet. */
async function schemaVersion(database: Database): Promise<number | undefined> {
  try {
    const row = await database.get<{ version: number }>('SELECT count(*) AS version FROM migration');
    return row?.version;
  } catch (error) {
    if (/migration/.test(messageOf(error))) return undefined;
    throw error;
  }
}

function judgeSchema(name: string, version: number | undefined): Finding {
  const known = migrations.length;
  if (version === undefined) return ok('ledger', `${name}: empty; the first start creates the schema.`);
  if (version > known)
    return problem(
      'ledger',
      `${name}: schema version ${version}; this program supports up to ${known}.`,
      'Run the newer version, or restore a backup from before the upgrade.',
    );
  if (version < known)
    return note(
      'ledger',
      `${name}: schema version ${version}; this program uses ${known}.`,
      'Back it up; the next start migrates it.',
    );
  return ok('ledger', `${name}: schema version ${version}.`);
}

/** Checks of SQLite's file: its integrity, and who may read it. */
async function judgeFile(file: string, database: Database): Promise<Finding[]> {
  const findings: Finding[] = [];
  const rows = await database.all<{ quick_check: string }>('PRAGMA quick_check(3)');
  const wrong = rows.map(({ quick_check }) => quick_check).filter((line) => line !== 'ok');
  if (wrong.length > 0)
    findings.push(
      problem('ledger', `${file} is damaged: ${wrong.join('; ')}.`, 'Stop the server and restore a backup.'),
    );
  if ((statSync(file).mode & 0o077) !== 0)
    findings.push(note('ledger', `Other users can read ${file}.`, `chmod 600 ${file}`));
  return findings;
}

/** Checks the database: reachable, intact, with a known schema. Changes nothing. */
export async function checkDatabase(config: StoreConfig): Promise<Finding[]> {
  const { databaseUrl, dataDir } = config;
  const file = path.join(dataDir, 'books.db');
  if (databaseUrl === undefined && !existsSync(file))
    return [ok('ledger', `${file}: does not exist; the first start creates it.`)];
  let database: Database;
  try {
    database = await openDatabase(config);
  } catch (error) {
    const todo = databaseUrl
      ? 'Start PostgreSQL, or correct CUTOUT_DATABASE_URL.'
      : 'Restore a backup, or let this user read and write it.';
    return [problem('ledger', messageOf(error), todo)];
  }
  try {
    const findings = [judgeSchema(database.name, await schemaVersion(database))];
    if (databaseUrl === undefined) return [...findings, ...(await judgeFile(file, database))];
    const ask = async () => {
      const row = await database.get<{ now: number }>(`SELECT ${database.dialect.clock} AS now`);
      return Number(row?.now);
    };
    return [...findings, await compareClocks('PostgreSQL', ask)];
  } catch (error) {
    return [problem('ledger', `${database.name}: ${messageOf(error)}`, 'See the log of the database.')];
  } finally {
    await database.close();
  }
}

/** Checks Redis: reachable, recent enough, and configured not to lose data. */
export async function checkRedis(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [];
  // Its library is loaded only if used.
  const { Redis } = await import('../../store/redis.ts');
  const warnings: Finding[] = [];
  let redis: Awaited<ReturnType<typeof Redis.open>>;
  try {
    const todo = 'Run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file.';
    const warn = (message: string) => warnings.push(note('redis', message, todo));
    redis = await Redis.open({ url, onChange: () => {} }, warn);
  } catch (error) {
    return [problem('redis', messageOf(error), 'Limits, sessions and cached results need it.')];
  }
  try {
    const ask = async () => {
      const [seconds, microseconds] = (await redis.commands.send(['TIME'])) as [string, string];
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    };
    return [ok('redis', 'Redis answers.'), ...warnings, await compareClocks('Redis', ask)];
  } catch (error) {
    return [problem('redis', messageOf(error), 'See the log of Redis.')];
  } finally {
    redis.close();
  }
}

/** Milliseconds. Leases last 20 s, rate windows a minute. */
const noticeable = 1000;
const harmful = 10_000;

/** Compares this machine's clock with one that nodes share; `ask` resolves to its Unix milliseconds. */
export async function compareClocks(whose: string, ask: () => Promise<number>): Promise<Finding> {
  const before = Date.now();
  const theirs = await ask();
  const wait = (Date.now() - before) / 2;
  const off = theirs - before - wait;
  // The clock was read at some time between question and answer.
  const sure = Math.abs(off) - wait;
  const said = `This machine's clock is ${Math.abs(off / 1000).toFixed(1)} s ${off > 0 ? 'behind' : 'ahead of'} that of ${whose}.`;
  const todo = 'Synchronise the clocks of both machines (chrony, systemd-timesyncd).';
  if (sure < noticeable) return ok('clock', `Synchronised with ${whose}.`);
  return sure < harmful ? note('clock', said, todo) : problem('clock', said, todo);
}
