import { writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { summarise } from '../../bench/lib/load/summary.ts';
import { figuresOf, goodputOf, joined, run } from '../../bench/overload.ts';
import { allowAllImages, scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';
import { testFolder } from '../support/stores.ts';

const sample = (done: number, code = 'ok') => ({ due: 0, sent: 0, done, code });

test('served counts results within the period in which requests arrived', (t) => {
  const samples = [sample(100), sample(900), sample(1900), sample(2100), sample(500, 'service_unavailable')];
  t.is(goodputOf(samples, 2), 1.5);
});

test('figures compare with the best stage', (t) => {
  const stage = (name: string, goodput: number, times: readonly number[], server: number) => ({
    name,
    offered: 9,
    goodput,
    summary: summarise(times.map((ms) => sample(ms))),
    health: [1, 7],
    cores: { server, client: 0, others: 0 },
  });
  const figures = figuresOf([
    stage('4 callers', 2, [100, 100], 2),
    stage('3 × saturation', 1.5, [100, 100, 400], 1.875),
  ]);
  const figure = (name: string) => figures.find((one) => one.name === name)?.median;
  t.is(figure('overload.4_callers.goodput'), 1);
  t.is(figure('overload.3_saturation.goodput'), 0.75);
  t.is(figure('overload.4_callers.efficiency'), 1);
  t.is(figure('overload.3_saturation.efficiency'), 0.8);
  t.is(figure('overload.4_callers.spread'), 1);
  t.is(figure('overload.3_saturation.health'), 7);
});

test('rounds of a stage are combined: all results, one duration, every health check', (t) => {
  const round = (times: readonly number[], server: number) => ({
    name: 'one',
    offered: 2,
    samples: times.map((ms) => sample(ms)),
    health: times,
    cores: { server, client: 0, others: 1 },
  });
  const stage = joined([round([100, 200, 2100], 1), round([300], 2)], 2);
  t.is(stage.goodput, 0.75);
  t.is(stage.summary.ok, 4);
  t.deepEqual(stage.health, [100, 200, 2100, 300]);
  t.deepEqual(stage.cores, { server: 1.5, client: 0, others: 1 });
});

test('a running server is driven past saturation', async (t) => {
  const service = await startService(t, { credits: 10_000, running: 1, workMs: 50, waitMs: 200, rate: 0 });
  allowAllImages();
  const file = path.join(testFolder(t), 'scene.jpg');
  writeFileSync(file, await scene({ width: 200, height: 150 }));
  const options = {
    url: service.url,
    key: service.key,
    images: [file],
    mp: 0.03,
    size: 'full',
    parallel: 2,
    factors: [3],
    seconds: 1,
    rounds: 2,
    uploads: 2,
  };
  const { figures, parts } = await run(options, { progress: () => {} });
  const figure = (name: string) => figures.find((one) => one.name === name)?.median ?? Number.NaN;
  t.true(figure('overload.2_callers.goodput') > 0);
  t.true(figure('overload.3_saturation.health') > 0);
  t.true(figure('overload.uploads.health') > 0);
  const [table, flood] = parts;
  t.is(table?.kind === 'table' && table.rows.length, 2);
  // Files that only begin like an image: each was read completely.
  t.regex(String(flood?.kind === 'table' && flood.rows[0]?.at(-1)), /^\d+ \w+$/);
});
