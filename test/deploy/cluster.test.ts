import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { Agent, request } from 'undici';
import { Cluster, clusterMissing } from '../../deploy/local/cluster.ts';
import { askRedis } from '../../deploy/local/redis.ts';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores, type Stores } from '../../src/billing/stores.ts';
import { modelsFolder } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';
import { long } from '../fixtures/long.ts';

/** Megapixels per minute and account; every image here counts 1. */
const rateLimit = 100;
const granted = 1000;

/** No two are equal, so that no cached result answers for another. */
const imageOf = (serial: number) =>
  sharp({
    create: {
      width: 16 + (serial % 64),
      height: 16 + (Math.floor(serial / 64) % 64),
      channels: 3,
      background: { r: 200, g: Math.floor(serial / 4096), b: 64 },
    },
  })
    .png()
    .toBuffer();

interface Account {
  readonly id: string;
  readonly key: string;
}

interface Job {
  readonly account: Account;
  readonly image: Buffer;
  readonly size: 'full' | 'preview';
}

interface Answer {
  readonly charged: number;
  readonly replayed: boolean;
  readonly image: string;
}

/** Interruptions before an answer, and how often each occurred. */
class Tally {
  readonly seen = new Map<string, number>();
  count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

interface Asking {
  /** Whether a connection may break because nodes are killed. */
  readonly breaks?: boolean;
  readonly tally?: Tally;
}

const givenUp = 90_000;

let cluster: Cluster;
let stores: Stores;
let folder: string;
const agent = new Agent({ connections: 256, headersTimeout: 120_000 });
let serial = 0;

/** One request; anything but a correct answer, or 503 with Retry-After, is an error. */
async function ask(
  url: string,
  { account, image, size }: Job,
  idempotencyKey?: string,
): Promise<Answer | number> {
  const answer = await request(`${url}/v1.0/cutout`, {
    dispatcher: agent,
    method: 'POST',
    headers: {
      'x-api-key': account.key,
      'content-type': 'application/json',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
    body: JSON.stringify({ image_file_b64: image.toString('base64'), size }),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const { headers, statusCode } = answer;
  if (statusCode === 503 || statusCode === 429) {
    const seconds = Number(headers['retry-after']);
    if (!(seconds >= 1)) throw new WrongAnswer(`${statusCode} without Retry-After: ${bytes}`);
    return statusCode;
  }
  if (statusCode !== 200) throw new WrongAnswer(`${statusCode}: ${bytes}`);
  const { width, height } = await sharp(image).metadata();
  const made = await sharp(bytes).metadata();
  if (made.width !== width || made.height !== height) throw new WrongAnswer('another image');
  return {
    charged: Number(headers['x-credits-charged']),
    replayed: headers['idempotent-replayed'] === 'true',
    image: createHash('sha256').update(bytes).digest('hex'),
  };
}

class WrongAnswer extends Error {}

/** Repeats a request until it is answered, as a client does that honours 503. */
async function untilAnswered(url: string, job: Job, { breaks = false, tally }: Asking = {}): Promise<Answer> {
  for (const until = performance.now() + givenUp; ; await sleep(150 + Math.random() * 200)) {
    try {
      const answer = await ask(url, job);
      if (typeof answer !== 'number') return answer;
      if (answer === 429) throw new WrongAnswer('429');
      tally?.count('503');
    } catch (error) {
      if (!breaks || error instanceof WrongAnswer) throw error;
      tally?.count('broken connection');
    }
    if (performance.now() > until) throw new WrongAnswer(`no answer within ${givenUp / 1000} s`);
  }
}

async function newAccount(): Promise<Account> {
  const { id } = await stores.accounts.create('Test');
  const { key } = await stores.accounts.createKey(id);
  await stores.ledger.post(id, { kind: 'grant', amount: credits(granted) });
  return { id, key };
}

const newJob = async (account: Account, size: Job['size'] = 'full'): Promise<Job> => ({
  account,
  image: await imageOf(serial++),
  size,
});

const spent = async ({ id }: Account) => granted - (await stores.ledger.balance(id)).credits / 4;

/** Nothing is open, and verify finds no contradiction. `ms`: time for dead nodes to be noticed. */
async function settled(t: ExecutionContext, ms: number): Promise<void> {
  for (const until = performance.now() + ms; ; await sleep(100)) {
    const open = await stores.ledger.openReservations();
    if (open === 0) break;
    if (performance.now() > until) return t.fail(`${open} reservations stay open`);
  }
  t.deepEqual(await stores.ledger.verify(), []);
}

/** Lanes that post one image after the other until `stop`, each for an account of its own. */
function load(lanes: number, asking: Asking) {
  let stopped = false;
  const answered: { readonly account: Account; jobs: number; reported: number }[] = [];
  const run = async () => {
    let lane = { account: await newAccount(), jobs: 0, reported: 0 };
    answered.push(lane);
    while (!stopped) {
      // Below the account's limit per minute.
      if (lane.jobs === rateLimit - 10) {
        lane = { account: await newAccount(), jobs: 0, reported: 0 };
        answered.push(lane);
      }
      const answer = await untilAnswered(cluster.url, await newJob(lane.account), asking);
      lane.jobs++;
      lane.reported += answer.charged;
    }
  };
  const all = Promise.all(Array.from({ length: lanes }, run));
  // Its failure is reported at the end.
  all.catch(() => {});
  return {
    jobs: () => answered.reduce((sum, { jobs }) => sum + jobs, 0),
    /** Until that many more are answered. */
    async progress(more: number): Promise<void> {
      const before = this.jobs();
      await Promise.race([
        all,
        (async () => {
          for (const until = performance.now() + givenUp; this.jobs() < before + more; await sleep(10)) {
            if (performance.now() > until) throw new Error('the load stands still');
          }
        })(),
      ]);
    },
    async stop() {
      stopped = true;
      await all;
      return answered;
    },
  };
}

/** Every answered request is paid for once. */
async function paidOnce(t: ExecutionContext, answered: Awaited<ReturnType<ReturnType<typeof load>['stop']>>) {
  for (const { account, jobs } of answered) t.is(await spent(account), jobs);
}

const inCluster = unless(clusterMissing, test.serial);
if (clusterMissing === undefined) {
  test.before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'cutout-cluster-test-'));
    cluster = await Cluster.start({
      nodes: 3,
      settings: {
        CUTOUT_MODEL: 'u2netp',
        CUTOUT_MODELS_DIR: modelsFolder(path.join(folder, 'models'), { convolutions: 1 }),
        CUTOUT_SUBJECT_TYPES: 'off',
        CUTOUT_RATE_LIMIT: String(rateLimit),
        CUTOUT_LOG_LEVEL: 'info',
      },
      say: () => {},
    });
    stores = await openStores({
      dataDir: folder,
      databaseUrl: cluster.databaseUrl,
      billing: standardBilling,
    });
  });
  test.afterEach.always((t) => {
    if (t.passed) return;
    for (const { log } of cluster.nodes)
      for (const line of readFileSync(log, 'utf8').split('\n').slice(-2000))
        if (/"level":[56]0/.test(line)) t.log(line.slice(0, 1500));
  });
  test.after.always(async () => {
    await agent.destroy();
    await stores?.close();
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
}

inCluster('500 requests at once over all nodes, 100 of them repeats: 400 charges', async (t) => {
  t.timeout(300_000);
  const accounts = await Promise.all(Array.from({ length: 5 }, newAccount));
  const jobs: Job[] = [];
  for (const account of accounts) for (let i = 0; i < 80; i++) jobs.push(await newJob(account));
  const asked = [...jobs, ...jobs.filter((_, index) => index % 4 === 0)];
  const tally = new Tally();
  const started = performance.now();
  const answers = await Promise.all(asked.map((job) => untilAnswered(cluster.url, job, { tally })));
  t.log(`${((performance.now() - started) / 1000).toFixed(1)} s`, Object.fromEntries(tally.seen));
  for (const account of accounts) t.is(await spent(account), 80);
  t.is(
    answers.reduce((sum, { charged }) => sum + charged, 0),
    400,
    'reported as charged',
  );
  t.is(answers.filter(({ replayed }) => replayed).length, 100);
  for (const [index, job] of jobs.entries()) {
    const same = answers.filter((_, at) => asked[at] === job);
    t.is(new Set(same.map((answer) => answer.image)).size, 1, String(index));
  }
  await settled(t, 60_000);
});

inCluster('the same request on all nodes at once is one run and one charge', async (t) => {
  t.timeout(120_000);
  const account = await newAccount();
  for (let round = 0; round < 20; round++) {
    const job = await newJob(account);
    const key = round % 2 ? `key ${round}` : undefined;
    const urls = [...cluster.nodes, ...cluster.nodes].map(({ url }) => url);
    const answers = await Promise.all(urls.map((url) => ask(url, job, key)));
    const reported = answers.map((answer) => (typeof answer === 'number' ? answer : answer.charged));
    t.deepEqual(reported.sort(), [0, 0, 0, 0, 0, 1]);
    t.is(new Set(answers.map((answer) => typeof answer !== 'number' && answer.image)).size, 1);
    t.is(await spent(account), round + 1);
  }
  await settled(t, 60_000);
});

inCluster('an account has its megapixels a minute once, not once on every node', async (t) => {
  t.timeout(120_000);
  const account = await newAccount();
  const jobs: Job[] = [];
  for (let i = 0; i < rateLimit + 30; i++) jobs.push(await newJob(account));
  const answers = await Promise.all(
    jobs.map(async (job, index) => {
      const { url } = cluster.nodes[index % cluster.nodes.length] ?? cluster;
      for (;;) {
        const answer = await ask(url, job);
        if (answer !== 503) return answer;
        await sleep(300);
      }
    }),
  );
  t.is(answers.filter((answer) => answer === 429).length, 30);
  t.is(await spent(account), rateLimit);
});

inCluster('free previews are given once, not once on every node', async (t) => {
  t.timeout(120_000);
  const account = await newAccount();
  const { perDay } = standardBilling.freePreviews;
  const jobs = await Promise.all(Array.from({ length: perDay + 20 }, () => newJob(account, 'preview')));
  const answers = await Promise.all(
    jobs.map((job, index) => untilAnswered((cluster.nodes[index % 3] ?? cluster).url, job)),
  );
  t.is(answers.filter(({ charged }) => charged === 0).length, perDay);
  t.is(await spent(account), 5);
  t.is((await stores.ledger.freePreviews(account.id)).leftToday, 0);
});

inCluster('a revoked key opens nothing on any node from then on', async (t) => {
  const account = await newAccount();
  const created = await stores.accounts.createKey(account.id);
  const status = async (url: string) => {
    const answer = await fetch(`${url}/v1.0/account`, { headers: { 'X-Api-Key': created.key } });
    await answer.body?.cancel();
    return answer.status;
  };
  for (const { url } of cluster.nodes) t.is(await status(url), 200);
  await stores.accounts.revokeKey(created.id);
  for (const { url } of cluster.nodes) t.is(await status(url), 403);
});

inCluster('who signs out on one node is signed out on all, at once', async (t) => {
  const [first, second, third] = cluster.nodes;
  if (!first || !second || !third) throw new Error('three nodes');
  const post = (url: string, path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${url}/console/api/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const token = await new SignIns(stores.database, Date.now).createLink('local');
  const opened = await post(first.url, 'link', { token });
  const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const { csrf } = (await opened.json()) as { csrf: string };
  const overview = async (url: string) => {
    const answer = await fetch(`${url}/console/api/overview`, { headers: { Cookie: cookie } });
    await answer.body?.cancel();
    return answer.status;
  };
  for (const { url } of cluster.nodes) t.is(await overview(url), 200);
  t.is((await post(third.url, 'link', { token })).status, 401, 'a link opens once on all nodes together');
  const out = await post(second.url, 'sign-out', {}, { Cookie: cookie, 'X-CSRF-Token': csrf });
  t.is(out.status, 200);
  for (const { url } of cluster.nodes) t.is(await overview(url), 401);
});

inCluster('failed tries are counted on all nodes together', async (t) => {
  const tries = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const { url } = cluster.nodes[index % 3] ?? cluster;
      const answer = await fetch(`${url}/v1.0/account`, {
        // Set by nginx in the cluster: this is an address for documentation.
        headers: { 'X-Api-Key': `unknown-key-${index}`, 'X-Forwarded-For': '192.0.2.44' },
      });
      await answer.body?.cancel();
      return answer.status;
    }),
  );
  t.true(tries.filter((status) => status === 403).length >= 30);
  for (const { url } of cluster.nodes) {
    const answer = await fetch(`${url}/v1.0/account`, {
      headers: { 'X-Api-Key': 'unknown-key', 'X-Forwarded-For': '192.0.2.44' },
    });
    t.is(answer.status, 429);
    t.true(Number(answer.headers.get('retry-after')) > 0);
  }
});

const kills = long ? 20 : 3;
inCluster(
  `a node is killed at random under load, ${kills} times: answers, and nothing charged twice`,
  async (t) => {
    t.timeout(1_200_000);
    const tally = new Tally();
    const work = load(8, { breaks: true, tally });
    for (let kill = 0; kill < kills; kill++) {
      await work.progress(10);
      await sleep(Math.random() * 100);
      const node = cluster.nodes[Math.floor(Math.random() * cluster.nodes.length)];
      if (!node) throw new Error('no node');
      await node.kill();
      tally.count('kill');
      await work.progress(10);
      await node.start();
    }
    await work.progress(10);
    const answered = await work.stop();
    // What the dead nodes left open is released when their leases have expired.
    await settled(t, 60_000);
    let [jobs, charged, back] = [0, 0, 0];
    for (const lane of answered) {
      const paid = await spent(lane.account);
      const entries = await stores.ledger.statement(lane.account.id);
      const refunds = entries.filter(({ kind }) => kind === 'refund').length;
      jobs += lane.jobs;
      charged += paid;
      back += refunds;
      t.true(paid <= lane.jobs, `${paid} charged for ${lane.jobs} answers`);
      // A node that died between sending an answer and recording that refunds the charge.
      t.true(lane.jobs - paid <= refunds, `${lane.jobs - paid} answers not charged, ${refunds} given back`);
    }
    t.log(`${jobs} answered, ${charged} charged, ${back} given back`, Object.fromEntries(tally.seen));
  },
);

const restarts = long ? 6 : 1;
inCluster(`PostgreSQL is restarted under load, ${restarts} times: right answers or 503`, async (t) => {
  t.timeout(600_000);
  const tally = new Tally();
  const work = load(8, { tally });
  for (let restart = 0; restart < restarts; restart++) {
    await work.progress(20);
    // In order, and every second time with a crash.
    if (restart % 2 === 1) {
      await cluster.postgres.kill();
      await cluster.postgres.start();
    } else await cluster.postgres.restart();
    await work.progress(20);
  }
  const answered = await work.stop();
  await settled(t, 60_000);
  await paidOnce(t, answered);
  t.log(`${work.jobs()} answered`, Object.fromEntries(tally.seen));
});

for (const [what, disturb] of [
  [
    'restarted',
    async () => {
      await cluster.redis.kill();
      await sleep(500);
      await cluster.redis.start();
    },
  ],
  ['flushed', () => askRedis(cluster.redis.url, 'FLUSHALL')],
  [
    'hanging for five seconds',
    async () => {
      cluster.redis.pause();
      await sleep(5000);
      cluster.redis.resume();
    },
  ],
  [
    'filled to its limit',
    async () => {
      const { url } = cluster.redis;
      const memory = String(await askRedis(url, 'INFO', 'memory'));
      const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
      await askRedis(url, 'CONFIG', 'SET', 'maxmemory', String(used + 3_000_000));
      for (let i = 0; ; i++) {
        const full = await askRedis(url, 'SET', `foreign ${i}`, 'x'.repeat(100_000)).then(
          () => false,
          () => true,
        );
        if (full) break;
      }
      await sleep(2000);
      await askRedis(url, 'CONFIG', 'SET', 'maxmemory', '0');
      for (let i = 0; i < 40; i++) await askRedis(url, 'DEL', `foreign ${i}`);
    },
  ],
] as const) {
  inCluster(`Redis is ${what} under load, ${restarts} times: right answers or 503`, async (t) => {
    t.timeout(600_000);
    const tally = new Tally();
    const work = load(8, { tally });
    for (let round = 0; round < restarts; round++) {
      await work.progress(20);
      await disturb();
      await work.progress(20);
    }
    const answered = await work.stop();
    await settled(t, 60_000);
    await paidOnce(t, answered);
    t.log(`${work.jobs()} answered`, Object.fromEntries(tally.seen));
  });
}

inCluster('what was paid for is not charged again although Redis lost its result', async (t) => {
  const account = await newAccount();
  const job = await newJob(account);
  const first = await untilAnswered(cluster.url, job);
  t.is(first.charged, 1);
  await askRedis(cluster.redis.url, 'FLUSHALL');
  const again = await untilAnswered(cluster.url, job);
  t.deepEqual([again.charged, again.image], [0, first.image]);
  t.is(await spent(account), 1);
});
