import test from 'ava';
import { DurationEstimate } from '../../src/limits/durationEstimate.ts';

const jpeg = (megapixels: number) => [{ megapixels, coding: 'jpeg source' }] as const;

const preview = { decoded: jpeg(2), network: 0.4, result: 0.25, encoding: 'png' } as const;
const large = { decoded: jpeg(50), network: 1, result: 50, encoding: 'png' } as const;

test('estimates approach measured durations; small images and their fixed costs count little', (t) => {
  const estimate = new DurationEstimate(preview, 100);
  t.is(Math.round(estimate.milliseconds({ decoded: jpeg(0), network: 2, result: 0, encoding: 'png' })), 200);
  const small = { decoded: jpeg(0.01), network: 1, result: 0.01, encoding: 'png' } as const;
  for (let i = 0; i < 50; i++) {
    estimate.learn(large, { decode: 500, network: 900, result: 1200, encode: 300 });
    estimate.learn(small, { decode: 5, network: 900, result: 4, encode: 1 });
  }
  const ms = estimate.milliseconds(large);
  t.true(Math.abs(ms - 2900) < 60, `${ms}`);
});

test('work is heavy if it takes more than twice as long as a preview', (t) => {
  // A preview: 2 x 12 + 0.4 x 1000 + 0.25 x (32 + 8) milliseconds.
  const estimate = new DurationEstimate(preview, 1000);
  const network = (ms: number) => ({ ...preview, network: (ms - 434) / 1000 + preview.network });
  t.false(estimate.isHeavy(network(2 * 434 - 1)));
  t.true(estimate.isHeavy(network(2 * 434 + 1)));
  t.false(new DurationEstimate().isHeavy(network(1e9)));
});

test('HEIC is learnt apart from what decodes faster, and heavy where decoding takes long beside a preview', (t) => {
  const estimate = new DurationEstimate(preview, 1000);
  const [fast, heic] = [
    { ...preview, decoded: jpeg(4) },
    { ...preview, decoded: [{ megapixels: 4, coding: 'heic source' }] },
  ] as const;
  t.true(estimate.milliseconds(heic) > estimate.milliseconds(fast) + 200);
  const before = estimate.milliseconds(fast);
  for (let i = 0; i < 20; i++) {
    estimate.learn(heic, { decode: 900, network: 400, result: 8, encode: 2 });
    estimate.learn(fast, { decode: 48, network: 400, result: 8, encode: 2 });
  }
  t.true(Math.abs(estimate.milliseconds(fast) - before) < 20, `${estimate.milliseconds(fast)}`);
  t.true(Math.abs(estimate.milliseconds(heic) - 1310) < 20, `${estimate.milliseconds(heic)}`);
  t.true(estimate.isHeavy(heic));
  t.true(new DurationEstimate(preview, 1000).isHeavy(heic), 'before the first one too');
  t.false(
    new DurationEstimate(preview, 1000).isHeavy({
      ...heic,
      decoded: [{ megapixels: 0.5, coding: 'heic source' }],
    }),
  );
  t.false(estimate.isHeavy(fast));
});

test('a first run that stalled does not make every job look too long', (t) => {
  const job = { decoded: jpeg(1), network: 1, result: 1, encoding: 'png' } as const;
  t.true(new DurationEstimate(preview, 60_000).milliseconds(job) < 10_000);
  t.true(new DurationEstimate(preview, 8000).milliseconds(job) > 8000, 'a slow machine is believed');
});

test('what icons take says nothing about a megapixel, however many there were', (t) => {
  const estimate = new DurationEstimate(preview, 900);
  const before = estimate.milliseconds(large);
  const icon = { decoded: jpeg(0.003), network: 1, result: 0.003, encoding: 'png' } as const;
  for (let i = 0; i < 100; i++) estimate.learn(icon, { decode: 4, network: 900, result: 4, encode: 2 });
  t.true(Math.abs(estimate.milliseconds(icon) - 910) < 1);
  t.true(estimate.milliseconds(large) < before + 20, `${estimate.milliseconds(large)}`);
  // One large job is believed at once, and a slower machine makes nothing cheaper.
  estimate.learn(large, { decode: 5000, network: 900, result: 6500, encode: 1000 });
  t.true(Math.abs(estimate.milliseconds(large) - 13_400) < 200, `${estimate.milliseconds(large)}`);
  const medium = { decoded: jpeg(2), network: 1, result: 2, encoding: 'png' } as const;
  for (let i = 0; i < 100; i++) estimate.learn(medium, { decode: 0, network: 0, result: 0, encode: 0 });
  for (const size of [icon, preview, large]) t.true(estimate.milliseconds(size) >= 0);
});

test('a format that takes long to encode is known before its first job, and learnt apart from the others', (t) => {
  const estimate = new DurationEstimate(preview, 200);
  const webp = { ...large, encoding: 'webp' } as const;
  const avif = { ...large, encoding: 'avif' } as const;
  t.true(estimate.milliseconds(webp) > estimate.milliseconds(large) + 2000);
  t.true(estimate.milliseconds(avif) > estimate.milliseconds(webp) + 2000);
  const [png, before] = [estimate.milliseconds(large), estimate.milliseconds(avif)];
  for (let i = 0; i < 50; i++)
    estimate.learn(webp, { decode: 600, network: 200, result: 1600, encode: 9000 });
  t.true(Math.abs(estimate.milliseconds(webp) - 11_400) < 100, `${estimate.milliseconds(webp)}`);
  t.true(Math.abs(estimate.milliseconds(large) - png) < 20, `${estimate.milliseconds(large)} ${png}`);
  t.true(Math.abs(estimate.milliseconds(avif) - before) < 20);
});

test('a job that stalled raises what is expected for a few jobs, and a machine that became slow is believed', (t) => {
  const estimate = new DurationEstimate(preview, 200);
  const usual = { decode: 12, network: 200, result: 32, encode: 8 };
  const job = { decoded: jpeg(1), network: 1, result: 1, encoding: 'png' } as const;
  for (let i = 0; i < 50; i++) estimate.learn(job, usual);
  estimate.learn(job, { ...usual, network: 60_000 });
  t.true(estimate.milliseconds(job) < 3 * 252, `${estimate.milliseconds(job)}`);
  for (let i = 0; i < 10; i++) estimate.learn(job, usual);
  t.true(estimate.milliseconds(job) < 1.5 * 252, `${estimate.milliseconds(job)}`);
  for (let i = 0; i < 30; i++) estimate.learn(job, { decode: 240, network: 4000, result: 640, encode: 160 });
  t.true(Math.abs(estimate.milliseconds(job) - 5040) < 300, `${estimate.milliseconds(job)}`);
  // Also after a time in which nothing took any.
  for (let i = 0; i < 200; i++) estimate.learn(job, { decode: 0, network: 0, result: 0, encode: 0 });
  for (let i = 0; i < 60; i++) estimate.learn(job, usual);
  t.true(Math.abs(estimate.milliseconds(job) - 252) < 10, `${estimate.milliseconds(job)}`);
});

test('an image with a mask and a background takes as long as all of them, and teaches nothing about one', (t) => {
  const estimate = new DurationEstimate(preview, 1000);
  const heic = (megapixels: number) => ({ megapixels, coding: 'heic source' }) as const;
  const several = { ...preview, decoded: [...jpeg(2), heic(50), heic(50)] };
  t.is(Math.round(estimate.milliseconds(several) - estimate.milliseconds(preview)), 20_000);
  t.true(estimate.isHeavy({ ...preview, decoded: [...jpeg(2), heic(2)] }));
  const alone = { ...preview, decoded: [heic(50)] };
  const before = [preview, alone].map((size) => estimate.milliseconds(size));
  for (let i = 0; i < 20; i++) estimate.learn(several, { decode: 900, network: 400, result: 8, encode: 2 });
  t.deepEqual(
    [preview, alone].map((size) => Math.round(estimate.milliseconds(size))),
    before.map(Math.round),
  );
});
