import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { unzipSync } from 'fflate';
import { Browser } from '../fixtures/browser.ts';
import { startService } from '../fixtures/service.ts';

const entries = 60_000;
/** A multiple of what is read at a time, so that a last, empty page follows. */
const images = 400;

/** A service with an account of many entries, and a browser that is signed in to it. */
async function open(t: ExecutionContext, count = entries) {
  const service = await startService(t);
  const { accountId, stores } = service;
  // As failed requests leave them: what is reserved is released.
  await stores.database.run(
    `INSERT INTO entry (id, account_id, at, kind, amount, balance, payment, request_id, reservation_id)
     WITH RECURSIVE number (n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM number WHERE n < @last)
     SELECT n, @accountId, 1795795184249 + n, iif(n % 2 = 0, 'reserve', 'release'), 4 * (n % 2) * 2 - 4, 400 + 4 * (n % 2) - 4,
       iif(n % 2 = 0, 'full', NULL), iif(n % 2 = 0, 'r' || n, NULL), iif(n % 2 = 0, NULL, n - 1) FROM number`,
    { accountId, last: count + 8 },
  );
  const browser = new Browser();
  const base = `${service.url}/console/api`;
  const opened = await browser.fetch(`${base}/link`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token: await service.signIns.createLink(accountId) }),
  });
  t.is(opened.status, 200);
  return { service, browser, base };
}

/** Turns of the event loop until `work` has ended: others are answered in each. */
async function turnsOf<T>(work: Promise<T>): Promise<{ readonly result: T; readonly turns: number }> {
  let [turns, ended] = [0, false];
  const count = async () => {
    for (; !ended; turns++) await turn();
  };
  const counting = count();
  const result = await work.finally(() => {
    ended = true;
  });
  await counting;
  return { result, turns };
}

test('export and statement of an account with many entries give others their turns, and are whole', async (t) => {
  const { browser, base, service } = await open(t);
  const { result: statement, turns } = await turnsOf(
    browser.fetch(`${base}/statement.csv`).then((answer) => answer.text()),
  );
  t.true(turns > entries / 500, `${turns} turns`);
  const rows = statement.trimEnd().split('\r\n');
  t.is(rows.length, entries + 1);
  t.is(new Set(rows).size, rows.length);

  const exported = await turnsOf(browser.fetch(`${base}/export`).then((answer) => answer.arrayBuffer()));
  t.true(exported.turns > (2 * entries) / 500, `${exported.turns} turns`);
  const files = unzipSync(new Uint8Array(exported.result));
  const textOf = (name: string) => Buffer.from(files[name] ?? []).toString();
  const facts = JSON.parse(textOf('account.json'));
  t.is(facts.statement.length, entries);
  t.is(new Set(facts.statement.map(({ id }: { id: number }) => id)).size, entries);
  t.deepEqual(facts.images, []);
  t.is(
    textOf('account.json'),
    `${JSON.stringify(facts, undefined, 2).replace('"images": []', '"images": [\n\n  ]')}\n`,
  );
  t.is(textOf('statement.csv'), statement);
  t.false(service.text().includes('"level":50'));
});

test('nothing is read ahead of a reader that takes nothing', async (t) => {
  // Some tens of megabytes: more than the system buffers.
  const many = 5 * entries;
  const { browser, base, service } = await open(t, many);
  const { ledger } = service.stores;
  const own = ledger.statementNewestFirst.bind(ledger);
  let pages = 0;
  ledger.statementNewestFirst = (...args) => {
    pages += 1;
    return own(...args);
  };
  const answer = await browser.fetch(`${base}/statement.csv`);
  let before = -1;
  // Until it stands still: what the system buffers is taken.
  for (let still = 0; still < 2000; still = pages === before ? still + 1 : 0) {
    before = pages;
    await turn();
  }
  t.true(pages < many / 200 / 2, `${pages} pages`);
  await answer.body?.cancel();
});

test('the images of an export come page by page too', async (t) => {
  const { browser, base, service } = await open(t);
  await service.stores.database.run(
    `INSERT INTO improve_image (id, account_id, object, type, bytes, width, height, sha256, filename, tag, at, stored)
     WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < @images)
     SELECT 'i' || n, @accountId, 'o' || n, 'png', 1, 1, 1, '', NULL, NULL, n, 1 FROM number`,
    { accountId: service.accountId, images },
  );
  service.improve.bytes = async () => undefined;
  const answer = await browser.fetch(`${base}/export`);
  const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
  const facts = JSON.parse(Buffer.from(files['account.json'] ?? []).toString());
  t.is(new Set(facts.images.map(({ id }: { id: string }) => id)).size, images);
});
