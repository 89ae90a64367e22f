import { writeSync } from 'node:fs';
import { serveStores } from '../../src/billing/stores.ts';
import { noFreePreviews, undefinedIfInsufficient } from '../support/stores.ts';

/**
 * One of several nodes on one ledger. `charge`: reserves and settles in parallel until the credits are used up, then
 * reports how much it charged. `hang`: leaves work in progress and an undelivered answer, reports that, and waits to be killed.
 */
const [databaseUrl, account, what, leaseMs] = process.argv.slice(2);
if (!databaseUrl || !account || !what)
  throw new Error('usage: node_worker <url> <account> charge|hang [lease]');

const onError = (error: unknown) => {
  throw error;
};
const stores = await serveStores({
  dataDir: '',
  databaseUrl,
  billing: noFreePreviews,
  onError,
  ...(leaseMs && { leaseMs: Number(leaseMs) }),
});
const reserve = (requestId: string) => stores.ledger.reserve(account, { size: 'preview', requestId });

if (what === 'hang') {
  await reserve('held');
  await (await reserve('charged')).settle();
  writeSync(1, 'ready\n');
  setInterval(() => {}, 1000);
} else {
  let charged = 0;
  const lane = async (number: number) => {
    for (let i = 0; ; i++) {
      const reservation = await reserve(`${process.pid}.${number}.${i}`).catch(undefinedIfInsufficient);
      if (!reservation) return;
      if (i % 4 === 3) await reservation.release();
      else {
        const amount = (await reservation.settle()).charged;
        charged += amount;
        await reservation.deliver();
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, number) => lane(number)));
  writeSync(1, `${charged}\n`);
  await stores.close();
}
