import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores, serveStores } from '../../src/billing/stores.ts';
import { testFolder } from '../support/stores.ts';

const worker = fileURLToPath(new URL('./worker.js', import.meta.url));
const kills = 50;

/** Runs the worker, kills it with SIGKILL some time after it is ready, and returns the lines it wrote. */
async function runAndKill(...args: string[]): Promise<string[]> {
  const child = spawn(process.execPath, [worker, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (said === '') setTimeout(() => child.kill('SIGKILL'), 5 + Math.random() * 60);
    said += text;
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error(`The worker ended by itself: ${said}`);
  // The last line may be incomplete.
  return said.split('\n').slice(0, -1);
}

test(`${kills} times kill -9: nothing lost, nothing charged twice, nothing left open`, async (t) => {
  t.timeout(180_000);
  const dataDir = testFolder(t);
  const setUp = await openStores({ dataDir, billing: standardBilling });
  const { id } = await setUp.accounts.create('Test');
  await setUp.close();
  const said: string[] = [];
  let recovered = 0;

  for (let kill = 0; kill < kills; kill++) {
    said.push(...(await runAndKill(dataDir, id, `k${kill}`)));
    const onError = (error: unknown) => t.fail(String(error));
    const stores = await serveStores({ dataDir, billing: standardBilling, onError });
    recovered += stores.recovered;
    t.is(await stores.ledger.openReservations(), 0);
    t.deepEqual(await stores.ledger.verify(), []);
    await stores.close();
  }

  const stores = await openStores({ dataDir, billing: standardBilling });
  const entries = await stores.ledger.statement(id);
  const balance = (await stores.ledger.balance(id)).credits;
  await stores.close();

  const reserves = new Map(
    entries.filter(({ kind }) => kind === 'reserve').map((entry) => [entry.id, entry]),
  );
  const requestsOf = (kind: string) =>
    entries
      .filter((entry) => entry.kind === kind)
      .map(({ reservationId }) => reserves.get(reservationId ?? 0)?.requestId ?? '?');
  const saidOf = (what: string) =>
    said.filter((line) => line.startsWith(`${what} `)).map((line) => line.split(' ')[1] ?? '');
  const settles = requestsOf('settle');
  const refunds = new Set(requestsOf('refund'));
  const releases = new Set(requestsOf('release'));
  const grants = entries.filter(({ kind }) => kind === 'grant').map(({ reference }) => reference ?? '?');

  const granted = new Set(grants);
  t.deepEqual(
    saidOf('granted').filter((one) => !granted.has(one)),
    [],
    'an acknowledged grant is lost',
  );
  t.is(granted.size, grants.length, 'a grant was counted twice');
  t.is(new Set(settles).size, settles.length, 'a request was charged twice');

  const settled = new Set(settles);
  const settling = new Set(saidOf('settling'));
  t.deepEqual(
    settles.filter((one) => !settling.has(one)),
    [],
    'charged before the work was done',
  );
  t.deepEqual(
    saidOf('settled').filter((one) => !settled.has(one)),
    [],
    'an acknowledged charge is lost',
  );
  t.deepEqual(
    saidOf('delivered').filter((one) => refunds.has(one)),
    [],
    'a delivered one was given back',
  );
  // The only other way to stay charged: delivered, but killed before it could report that.
  const delivered = new Set(saidOf('delivered'));
  const charged = settles.filter((one) => !refunds.has(one) && !delivered.has(one));
  t.true(charged.length <= kills * 4, `${charged.length} charged without word of delivery`);
  const lastOfLane = new Set(charged.map((one) => one.split('.').slice(0, 2).join('.')));
  t.is(lastOfLane.size, charged.length, 'more than the very last of a lane was charged undelivered');
  t.deepEqual(
    saidOf('released').filter((one) => !releases.has(one)),
    [],
    'an acknowledged release is lost',
  );
  t.is(reserves.size, settles.length + releases.size, 'a reservation has no end');

  const prices = [...reserves.values()].filter(
    ({ requestId }) => settled.has(requestId ?? '') && !refunds.has(requestId ?? ''),
  );
  const expected = grants.length * credits(2) + prices.reduce((sum, { amount }) => sum + amount, 0);
  t.is(balance as number, expected);
  t.log(
    `${reserves.size} reservations, ${settles.length} settled, ${recovered} open at a kill, ${refunds.size} refunded`,
  );
  t.true(recovered > kills / 2, 'the kills hardly ever met an open reservation');
});
