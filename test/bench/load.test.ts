import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { closedLoop, dueTimes, openLoop } from '../../bench/lib/load/generate.ts';
import { heldRate, nextRate, type Step, type Summary, summarise } from '../../bench/lib/load/summary.ts';
import { run } from '../../bench/load.ts';
import { allowAllImages, scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';
import { testFolder } from '../support/stores.ts';

const plan = { perSecond: 50, seconds: 0.4, arrivals: 'even', drainSeconds: 5 } as const;

test('requests are due at the given rate within the run, reproducibly', (t) => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.1, max: 200, noNaN: true }),
      fc.double({ min: 0.1, max: 10, noNaN: true }),
      fc.constantFrom('even' as const, 'random' as const),
      (perSecond, seconds, arrivals) => {
        const due = dueTimes({ perSecond, seconds, arrivals, drainSeconds: 0 });
        const sorted = due.every((time, i) => i === 0 || time >= (due[i - 1] ?? 0));
        const within = due.every((time) => time >= 0 && time <= seconds * 1000 + 1000 / perSecond);
        return due.length === Math.max(1, Math.round(perSecond * seconds)) && sorted && within;
      },
    ),
  );
  const random = { ...plan, arrivals: 'random' } as const;
  t.deepEqual(dueTimes(random), dueTimes(random));
  t.deepEqual(dueTimes({ ...plan, seconds: 0.1 }), [0, 20, 40, 60, 80]);
});

test('an open loop does not wait for answers before it sends the next', async (t) => {
  let running = 0;
  let most = 0;
  const samples = await openLoop(plan, async () => {
    most = Math.max(most, ++running);
    await sleep(200);
    running--;
    return 'ok';
  });
  t.is(samples.length, 20);
  t.true(most >= 5);
});

test('a server that answers one at a time: latencies grow with the queue, as its clients experience them', async (t) => {
  let queue = Promise.resolve();
  // 40 ms each at 50 a second: every request waits 20 ms longer than the one before.
  const samples = await openLoop(plan, () => {
    const done = queue.then(() => sleep(40));
    queue = done;
    return done.then(() => 'ok');
  });
  const latencies = samples.map(({ due, done }) => done - due);
  t.true((latencies[0] ?? 0) >= 35);
  t.true((latencies.at(-1) ?? 0) >= 40 + 19 * 20 - 20);
});

test('a stall of the generator counts for the requests that were due meanwhile', async (t) => {
  let calls = 0;
  const samples = await openLoop(plan, async () => {
    if (calls++ === 0) {
      const end = performance.now() + 200;
      while (performance.now() < end);
    }
    return 'ok';
  });
  const late = samples.filter(({ due }) => due > 0 && due < 150);
  t.is(late.length, 7);
  for (const { due, sent, done } of late) {
    t.true(sent >= 199, `due ${due}, sent ${sent}`);
    t.true(done - due >= 198 - due);
    // Counted from the time of sending, they would seem faster than their clients experienced them.
    t.true(done - sent < done - due);
  }
});

test('requests unanswered when the run ends are counted with the time they waited', async (t) => {
  const never = new Promise<string>(() => {});
  const samples = await openLoop({ ...plan, seconds: 0.1, drainSeconds: 0.2 }, () => never);
  t.is(samples.length, 5);
  const { ok, sent, codes, p50 } = summarise(samples);
  t.deepEqual({ ok, sent, codes }, { ok: 0, sent: 5, codes: { unfinished: 5 } });
  t.true(p50 >= 200);
});

test('a closed loop has as many requests in progress as clients', async (t) => {
  let running = 0;
  let most = 0;
  const samples = await closedLoop({ parallel: 4, seconds: 0.2 }, async () => {
    most = Math.max(most, ++running);
    await sleep(10);
    running--;
    return 'ok';
  });
  t.is(most, 4);
  t.true(samples.length >= 4);
  t.true(samples.every(({ due, sent }) => due === sent));
});

test('refusals are counted and not mistaken for fast answers', (t) => {
  const at = (done: number, code: string) => ({ due: 0, sent: 0, done, code });
  const summary = summarise([
    at(100, 'ok'),
    at(300, 'ok'),
    at(1, 'service_unavailable'),
    at(1, 'service_unavailable'),
  ]);
  t.like(summary, { sent: 4, ok: 2, p50: 200, max: 300, codes: { ok: 2, service_unavailable: 2 } });
  t.is(summary.perSecond, 2 / 0.3);
});

const step = (perSecond: number, p95: number, ok = 10): Step => ({
  perSecond,
  summary: { sent: 10, ok, p95 } as Summary,
});

test('the sustained rate is the highest below the first that was missed', (t) => {
  t.is(heldRate([step(3, 500), step(1, 100), step(2, 150)], 200), 2);
  t.is(heldRate([step(1, 100), step(2, 300), step(3, 100)], 200), 1);
  t.is(heldRate([step(1, 100), step(2, 100, 9)], 200), 1);
  t.is(heldRate([step(1, 900)], 200), 0);
});

test('the search goes between the last sustained rate and the first missed one, and ends', (t) => {
  t.is(nextRate([step(1, 100), step(2, 300)], 200), 1.5);
  t.is(nextRate([step(1, 100)], 200), 1.3);
  t.is(nextRate([step(1, 900)], 200), 0.5);
  t.is(nextRate([step(1, 100), step(1.04, 300)], 200), undefined);
});

test('load measures a running server and counts what it refuses', async (t) => {
  const service = await startService(t, { credits: 1000, running: 1, workMs: 100, waitMs: 200, rate: 0 });
  allowAllImages();
  const file = path.join(testFolder(t), 'scene.jpg');
  writeFileSync(file, await scene({ width: 200, height: 150 }));
  const { figures, parts } = await run(
    {
      url: service.url,
      key: service.key,
      images: [file],
      mp: 0.03,
      size: 'full',
      format: 'png',
      parallel: [1, 2],
      rates: [0.3],
      arrivals: 'even',
      search: 1,
      burst: 30,
      bare: false,
      rounds: 1,
      seconds: 0.3,
    },
    { progress: () => {} },
  );
  const figure = (name: string) => figures.find((one) => one.name === name)?.median ?? Number.NaN;
  t.true(figure('load.capacity') > 0);
  t.true(figure('load.held') >= 0);
  const burst = parts.find((part) => part.kind === 'table' && part.title === 'All at once');
  const [row] = burst?.kind === 'table' ? burst.rows : [];
  t.is(row?.[0], 30);
  t.regex(String(row?.at(-1)), /\d+ ok/);
  t.regex(String(row?.at(-1)), /\d+ service_unavailable/);
});
