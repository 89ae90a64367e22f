import { writeSync } from 'node:fs';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { serveStores } from '../../src/billing/stores.ts';
import { undefinedIfInsufficient } from '../support/stores.ts';

/**
 * A server that is going to be killed: reserves and settles endlessly, several at a time. It reports on
 * standard output what it is about to do and what is done, so that the test knows what must hold.
 */
const [dataDir, account, name] = process.argv.slice(2);
if (!dataDir || !account || !name) throw new Error('usage: worker <folder> <account> <name>');

const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`);
const onError = (error: unknown) => {
  throw error;
};
const { ledger } = await serveStores({ dataDir, billing: standardBilling, onError });
const pause = () => new Promise((done) => setTimeout(done, Math.random() * 3));

async function oneAfterTheOther(lane: number): Promise<never> {
  for (let i = 0; ; i++) {
    const requestId = `${name}.${lane}.${i}`;
    if (i % 5 === 0) {
      say('granting', requestId);
      await ledger.post(account as string, { kind: 'grant', amount: credits(2), reference: requestId });
      say('granted', requestId);
    }
    const size = i % 3 === 0 ? 'preview' : 'full';
    const reservation = await ledger
      .reserve(account as string, { size, requestId })
      .catch(undefinedIfInsufficient);
    if (!reservation) continue;
    await pause();
    if (i % 4 === 0) {
      await reservation.release();
      say('released', requestId);
      continue;
    }
    say('settling', requestId);
    await reservation.settle();
    say('settled', requestId);
    await pause();
    await reservation.deliver();
    say('delivered', requestId);
  }
}

say('ready');
await Promise.all([0, 1, 2, 3].map(oneAfterTheOther));
