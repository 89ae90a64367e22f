import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import sharp from 'sharp';
import { Agent, request } from 'undici';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { eventually } from '../fixtures/service.ts';

const kills = 50;
const lanes = 6;
const granted = 1000;

/** No two are equal, so that no cached result answers. */
const imageOf = (lane: number, job: number) =>
  sharp({ create: { width: 64 + lane, height: 64 + job, channels: 3, background: '#c82840' } })
    .png()
    .toBuffer();

interface Answered {
  readonly requestId: string;
  readonly charged: string;
}

/** Posts jobs one after the other until the server is gone; a job without an answer is the next run's first. */
async function work(
  lane: { job: number; readonly number: number },
  server: Serving,
  key: string,
  agent: Agent,
  answered: Answered[],
): Promise<void> {
  for (;;) {
    const image = (await imageOf(lane.number, lane.job)).toString('base64');
    try {
      const answer = await request(`${server.url}/v1.0/cutout`, {
        dispatcher: agent,
        method: 'POST',
        headers: {
          'x-api-key': key,
          'content-type': 'application/json',
          'idempotency-key': `${lane.number}.${lane.job}`,
        },
        body: JSON.stringify({ image_file_b64: image, size: 'full' }),
      });
      await answer.body.arrayBuffer();
      if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
      const { 'x-request-id': requestId, 'x-credits-charged': charged } = answer.headers;
      answered.push({ requestId: String(requestId), charged: String(charged) });
      lane.job += 1;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('status')) throw error;
      return;
    }
  }
}

test.serial(
  `${kills} times kill -9 under load: no credit lost, none charged without an answer`,
  async (t) => {
    t.timeout(300_000);
    const dataDir = temporaryFolder(t);
    const env = {
      CUTOUT_DATA_DIR: dataDir,
      CUTOUT_MODELS_DIR: modelsFolder(path.join(dataDir, 'models'), { convolutions: 1 }),
      CUTOUT_RATE_LIMIT: '0',
      CUTOUT_LOG_LEVEL: 'error',
    };
    const open = () => openStores({ dataDir, billing: standardBilling });
    const setUp = await open();
    const { id } = await setUp.accounts.create('Test');
    const { key } = await setUp.accounts.createKey(id);
    await setUp.ledger.post(id, { kind: 'grant', amount: credits(granted) });
    await setUp.close();

    const started = performance.now();
    const answered: Answered[] = [];
    const state = Array.from({ length: lanes }, (_, number) => ({ number, job: 0 }));
    for (let kill = 0; kill < kills; kill++) {
      const server = await startServing(t, env);
      const stores = await open();
      t.is(await stores.ledger.openReservations(), 0);
      t.deepEqual(await stores.ledger.verify(), []);
      await stores.close();
      const agent = new Agent({ connections: lanes });
      const working = state.map((lane) => work(lane, server, key, agent, answered));
      // During the load, some of it answered; every fifth time during the first job.
      const before = answered.length;
      if (kill % 5 !== 4) await eventually(() => answered.length > before);
      await sleep(Math.random() * 80);
      server.child.kill('SIGKILL');
      await server.ended;
      await Promise.all(working);
      await agent.destroy();
    }
    // The last run is only restarted.
    const server = await startServing(t, env);
    server.child.kill('SIGTERM');
    await server.ended;

    const stores = await open();
    t.teardown(() => stores.close());
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
    const entries = await stores.ledger.statement(id);
    const reserved = new Map(
      entries.filter(({ kind }) => kind === 'reserve').map((entry) => [entry.id, entry]),
    );
    const of = (wanted: string) =>
      entries
        .filter(({ kind }) => kind === wanted)
        .map(({ reservationId }) => reserved.get(reservationId ?? 0)?.requestId ?? '?');
    const [settled, refunded, released] = [of('settle'), new Set(of('refund')), of('release')];
    const charged = settled.filter((one) => !refunded.has(one));

    t.is(new Set(settled).size, settled.length, 'charged twice');
    t.is(reserved.size, settled.length + released.length, 'a reservation without an end');
    const delivered = new Set(answered.map(({ requestId }) => requestId));
    t.deepEqual(
      charged.filter((one) => !delivered.has(one)),
      [],
      'charged without an answer',
    );
    t.true(answered.every((one) => one.charged === '1'));
    t.is((await stores.ledger.balance(id)).credits as number, credits(granted - charged.length) as number);
    // Work interrupted by a kill, and answers received by the client before the server knew.
    const interrupted = released.length + refunded.size;
    t.log(
      `${Math.round((performance.now() - started) / 1000)} s: ${answered.length} answered, ${charged.length} charged, ${released.length} released, ${refunded.size} given back`,
    );
    t.true(interrupted > kills / 2, 'the kills hardly ever met an open reservation');
    // Four of five kills waited for an answer.
    t.true(charged.length > answered.length / 2 && answered.length >= (4 * kills) / 5);
  },
);
