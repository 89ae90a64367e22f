import test from 'ava';
import type { Tier } from '../../src/billing/price.ts';
import {
  isEmptyForeground,
  makePlans,
  makePlan as planOf,
  tierToReserve,
  typeLabel,
} from '../../src/cutout/plan.ts';
import {
  type NetworkSize,
  networkInput,
  type Profile,
  type ProfileName,
  profiles,
} from '../../src/cutout/qualityProfile.ts';
import { type CutoutRequest, plainRequest } from '../../src/cutout/request.ts';
import type { Dimensions } from '../../src/image/types.ts';
import { planInputs } from '../support/planInputs.ts';

const request = (changes: Partial<CutoutRequest> = {}): CutoutRequest => ({
  ...plainRequest,
  source: { kind: 'bytes', bytes: new Uint8Array() },
  ...changes,
});
const source = { width: 4000, height: 3000 };
const network = { width: 1024, height: 1024 };
const makePlan = (asked: CutoutRequest, tier: Tier, size: Dimensions, of: NetworkSize, profile: Profile) =>
  planOf(asked, tier, planInputs(size), { network: of, profile });

test('a preview decodes no more than the network sees, a full result decodes everything', (t) => {
  const preview = makePlan(request(), 'preview', source, network, profiles.balanced);
  t.deepEqual(preview.result, { width: 577, height: 433 });
  t.deepEqual(preview.decode, { width: 1366, height: 1024 });
  const full = makePlan(request({ size: 'full' }), 'full', source, network, profiles.balanced);
  t.deepEqual(full.result, source);
  t.deepEqual(full.decode, source);
});

test('a network with a free size runs smaller for a preview, one with a fixed size does not', (t) => {
  const free = { ...network, sizeStep: 64 };
  const plan = (size: 'preview' | 'full', profile: ProfileName, of: NetworkSize = free) =>
    makePlan(request({ size }), size, source, of, profiles[profile]);
  t.deepEqual(plan('preview', 'balanced', network).input, { width: 1024, height: 1024 });
  for (const profile of ['fast', 'balanced', 'best'] as const) {
    const [preview, full] = [plan('preview', profile), plan('full', profile)];
    t.is(preview.input.width % 64, 0);
    t.true(preview.input.width <= full.input.width && full.input.width <= 1024);
    // Enough is decoded for a second run at the usual size.
    t.deepEqual(preview.decode, { width: 1366, height: 1024 });
  }
  t.deepEqual(plan('preview', 'balanced').input, { width: 640, height: 640 });
  t.deepEqual(plan('full', 'balanced').input, { width: 1024, height: 1024 });
  const wide = networkInput(profiles.balanced, 'preview', { width: 1024, height: 96, sizeStep: 32 });
  t.deepEqual(wide, { width: 640, height: 96 });
  const coarse = networkInput(profiles.fast, 'preview', { width: 1024, height: 640, sizeStep: 256 });
  t.deepEqual(coarse, { width: 512, height: 512 });
  for (const profile of Object.values(profiles)) {
    const small = networkInput(profile, 'preview', { width: 320, height: 320, sizeStep: 32 });
    t.deepEqual(small, { width: 320, height: 320 });
  }
});

test('auto is the size that the ledger resolved it to, and a preview if its result is no larger than one', (t) => {
  const auto = request({ size: 'auto' });
  t.is(tierToReserve(auto, source), 'auto');
  t.is(tierToReserve(auto, { width: 500, height: 500 }), 'preview');
  t.is(tierToReserve(auto, { width: 250_001, height: 1 }), 'auto');
  t.deepEqual(makePlan(auto, 'full', source, network, profiles.balanced).result, source);
  t.deepEqual(makePlan(auto, 'preview', source, network, profiles.balanced).result, {
    width: 577,
    height: 433,
  });
});

test('only a preview is planned as one', (t) => {
  t.is(tierToReserve(request(), source), 'preview');
  for (const size of ['medium', 'hd', 'full', '50MP'] as const)
    t.is(tierToReserve(request({ size }), source), 'full');
});

test('size=auto is planned as full and as preview; any other size has one plan', (t) => {
  const machine = { network, profile: profiles.balanced };
  const open = makePlans(request({ size: 'auto' }), planInputs(source), machine);
  t.deepEqual([open.full.result, open.preview.result], [source, { width: 577, height: 433 }]);
  const fixed = makePlans(request({ size: 'medium' }), planInputs(source), machine);
  t.is(fixed.full, fixed.preview);
  t.deepEqual(fixed.full.result, { width: 1414, height: 1060 });
});

test('only a ZIP keeps the colours under alpha 0', (t) => {
  t.is(makePlan(request({ format: 'zip' }), 'full', source, network, profiles.balanced).hiddenColour, 'keep');
  for (const format of ['auto', 'png', 'jpg', 'webp', 'avif'] as const)
    t.is(makePlan(request({ format }), 'full', source, network, profiles.balanced).hiddenColour, 'clear');
});

test('the matte alone has neither shadow nor background, except in a ZIP', (t) => {
  const changes = {
    channels: 'alpha',
    shadow: { addShadow: true, shadowType: {}, shadowOpacity: {} },
    background: { kind: 'colour', colour: [255, 0, 0, 255] },
  } as const;
  const alone = makePlan(request(changes), 'full', source, network, profiles.balanced);
  t.deepEqual(alone.background, { kind: 'none' });
  t.is(alone.shadowOpacity.product, 0);
  const zip = makePlan(request({ ...changes, format: 'zip' }), 'full', source, network, profiles.balanced);
  t.deepEqual(zip.background, changes.background);
  t.is(zip.shadowOpacity.product, 0.5);
});

test('hardly any foreground counts as none: 16 pixels, or 0.02 % of the possible area', (t) => {
  t.true(isEmptyForeground(15, 100));
  t.false(isEmptyForeground(16, 100));
  t.false(isEmptyForeground(16, 80_000));
  t.true(isEmptyForeground(2399, 12_000_000));
  t.false(isEmptyForeground(2400, 12_000_000));
});

test('the subject is classified only if its type is reported or a shadow depends on it', (t) => {
  const subject = (changes: Partial<CutoutRequest>) =>
    makePlan(request(changes), 'full', source, network, profiles.balanced).subject;
  const shadow = (shadowType: CutoutRequest['shadow']['shadowType']) => ({
    addShadow: false,
    shadowType,
    shadowOpacity: {},
  });
  t.is(subject({}), 'classify');
  t.is(subject({ typeLevel: 'none' }), 'unused');
  t.is(subject({ type: 'car' }), 'car');
  t.is(subject({ type: 'car', typeLevel: 'none' }), 'car');
  t.is(subject({ typeLevel: 'none', shadow: shadow({ person: 'drop' }) }), 'classify');
  t.is(subject({ typeLevel: 'none', shadow: shadow({ any: 'auto' }) }), 'classify');
  t.is(subject({ typeLevel: 'none', shadow: shadow({ any: 'none' }) }), 'unused');
  // The matte alone has no shadow.
  t.is(subject({ typeLevel: 'none', channels: 'alpha', shadow: shadow({ any: 'auto' }) }), 'unused');
});

test('the reported type depends on the level', (t) => {
  t.is(typeLabel('person', 'none'), undefined);
  t.is(typeLabel('other', '2'), 'other');
  t.is(typeLabel('graphic', '1'), 'other');
  t.is(typeLabel('graphic', '2'), 'graphics');
  t.is(typeLabel('transportation', '1'), 'other');
  t.is(typeLabel('transportation', '2'), 'transportation');
  for (const type of ['person', 'product', 'car', 'animal', 'other'] as const)
    for (const level of ['1', '2'] as const) t.is(typeLabel(type, level), type);
});
