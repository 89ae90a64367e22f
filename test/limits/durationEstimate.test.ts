import test from 'ava';
import { DurationEstimate } from '../../src/limits/durationEstimate.ts';

const preview = { source: 2, network: 0.4, result: 0.25 };
const large = { source: 50, network: 1, result: 50 };

test('estimates approach measured durations; small images and their fixed costs count little', (t) => {
  const estimate = new DurationEstimate(preview, { network: 100 });
  t.is(Math.round(estimate.milliseconds({ source: 0, network: 2, result: 0 })), 200);
  for (let i = 0; i < 50; i++) {
    estimate.learn(large, { source: 500, network: 900, result: 1500 });
    estimate.learn({ source: 0.01, network: 1, result: 0.01 }, { source: 5, network: 900, result: 5 });
  }
  const ms = estimate.milliseconds(large);
  t.true(Math.abs(ms - 2900) < 60, `${ms}`);
});

test('work is heavy if it takes more than four times as long as a preview', (t) => {
  const estimate = new DurationEstimate(preview, { source: 0, network: 1000, result: 0 });
  t.false(estimate.isHeavy(1600));
  t.true(estimate.isHeavy(1601));
  t.false(new DurationEstimate().isHeavy(1e9));
});

test('what icons take says nothing about a megapixel, however many there were', (t) => {
  const estimate = new DurationEstimate(preview, { network: 900 });
  const before = estimate.milliseconds(large);
  const icon = { source: 0.003, network: 1, result: 0.003 };
  for (let i = 0; i < 100; i++) estimate.learn(icon, { source: 4, network: 900, result: 6 });
  t.true(Math.abs(estimate.milliseconds(icon) - 910) < 1);
  t.true(estimate.milliseconds(large) < before + 20, `${estimate.milliseconds(large)}`);
  // One large job is believed at once, and a slower machine makes nothing cheaper.
  estimate.learn(large, { source: 5000, network: 900, result: 7500 });
  t.true(Math.abs(estimate.milliseconds(large) - 13_400) < 200, `${estimate.milliseconds(large)}`);
  for (let i = 0; i < 100; i++)
    estimate.learn({ source: 2, network: 1, result: 2 }, { source: 0, network: 0, result: 0 });
  for (const size of [icon, preview, large]) t.true(estimate.milliseconds(size) >= 0);
});
