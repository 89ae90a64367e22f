import test from 'ava';
import { makePlans } from '../../src/cutout/plan.ts';
import { profiles } from '../../src/cutout/qualityProfile.ts';
import { plainRequest } from '../../src/cutout/request.ts';
import { estimateResources, finishedWork } from '../../src/cutout/resourceEstimate.ts';
import { DurationEstimate } from '../../src/limits/durationEstimate.ts';
import { planInputs } from '../support/planInputs.ts';

const setup = { network: { width: 1024, height: 1024 }, profile: profiles.balanced };

const planOf = (width: number, height: number, cropAndShadow: boolean) =>
  makePlans(
    {
      ...plainRequest,
      source: { kind: 'bytes', bytes: new Uint8Array() },
      size: 'full',
      ...(cropAndShadow && {
        crop: true,
        shadow: { addShadow: true, shadowType: {}, shadowOpacity: {} },
      }),
    },
    planInputs({ width, height }),
    setup,
  ).full;

test('thin images whose crop and shadow might have been large do not make large jobs look short', (t) => {
  const estimate = new DurationEstimate();
  const large = estimateResources(planOf(8000, 6000, false));
  for (let i = 0; i < 20; i++) estimate.learn(large, { decode: 600, network: 400, result: 300, encode: 400 });
  const before = estimate.milliseconds(large);
  const thin = planOf(65_000, 2, true);
  const reserved = estimateResources(thin);
  t.true(reserved.result > 100, 'the bound is far larger than the image');
  for (let i = 0; i < 20; i++) {
    const done = finishedWork(thin, reserved, { width: 40, height: 30 });
    estimate.learn(done, { decode: 5, network: 400, result: 5, encode: 2 });
  }
  t.true(estimate.milliseconds(large) > 0.9 * before);
});

test('small crops of large images do not make encoding large ones look short', (t) => {
  const estimate = new DurationEstimate();
  const large = estimateResources(planOf(8000, 6000, false));
  for (let i = 0; i < 20; i++)
    estimate.learn(large, { decode: 600, network: 400, result: 300, encode: 2000 });
  const before = estimate.milliseconds(large);
  const plan = planOf(8000, 6000, true);
  const done = finishedWork(plan, estimateResources(plan), { width: 600, height: 400 });
  for (let i = 0; i < 20; i++) estimate.learn(done, { decode: 600, network: 400, result: 300, encode: 20 });
  t.true(estimate.milliseconds(large) > 0.9 * before);
});

test('a finished job counts its refined pixels, or those of a larger result', (t) => {
  const plan = planOf(2000, 1000, true);
  const reserved = estimateResources(plan);
  t.is(finishedWork(plan, reserved, { width: 10, height: 10 }).result, 2);
  t.is(finishedWork(plan, reserved, { width: 3000, height: 1000 }).result, 3);
  t.is(finishedWork(plan, reserved, { width: 10, height: 10 }).decoded, reserved.decoded);
});

test('every image that is decoded counts in what a job takes, by its format', (t) => {
  const { image } = planInputs({ width: 1000, height: 1000 });
  const heic = {
    ...image,
    probe: { ...image.probe, width: 8000, height: 6000, format: 'heic' },
  } as const;
  const request = {
    ...plainRequest,
    source: { kind: 'bytes', bytes: new Uint8Array() },
    background: { kind: 'image', source: { kind: 'bytes', bytes: new Uint8Array() } },
  } as const;
  const inputs = { image, background: heic, mask: heic };
  const estimate = new DurationEstimate();
  const plain = estimateResources(makePlans(request, { image, background: undefined }, setup).preview);
  const all = estimateResources(makePlans(request, inputs, setup).preview);
  t.is(Math.round(estimate.milliseconds(all) - estimate.milliseconds(plain)), 2 * 48 * 200);
  // A matte has no background.
  const matte = estimateResources(makePlans({ ...request, channels: 'alpha' }, inputs, setup).preview);
  t.is(matte.decoded.length, 2);
  const scans = { ...image, probe: { ...image.probe, progressive: true } } as const;
  const progressive = makePlans(request, { image: scans, background: undefined }, setup).preview;
  t.true(estimate.milliseconds(estimateResources(progressive)) > estimate.milliseconds(plain));
});
