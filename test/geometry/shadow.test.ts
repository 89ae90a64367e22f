import test from 'ava';
import fc from 'fast-check';
import type { SubjectType } from '../../src/engine/types.ts';
import { isInside } from '../../src/geometry/box.ts';
import {
  type BySubject,
  dropShadow,
  dropShadowOpacity,
  parseBySubject,
  type ShadowOpacity,
  type ShadowType,
  shadowExtent,
  shadowOpacityParser,
  shadowReach,
  shadowTypeParser,
} from '../../src/geometry/shadow.ts';
import { loadKernels } from '../native/kernelsAddon.ts';
import { imageAndSubject } from './arbitraries.ts';

const kernels = loadKernels();

for (const [text, value] of [
  ['0', 0],
  ['50', 0.5],
  ['87.5', 0.875],
  ['100', 1],
  ['auto', 'auto'],
  ['AUTO', 'auto'],
  ['101', undefined],
  ['-1', undefined],
  ['50%', undefined],
  ['50px', undefined],
  ['1e1', undefined],
  ['0x10', undefined],
  ['half', undefined],
] as const) {
  test(`shadow_opacity "${text}" is ${value ?? 'invalid'}`, (t) =>
    t.is(shadowOpacityParser.parse(text), value));
}

test('shadow_type is one of five words', (t) => {
  const words = ['none', 'auto', 'drop', 'car', '3D', '3d', 'Drop', 'natural', '3', 'true'];
  t.deepEqual(words.map(shadowTypeParser.parse), [
    'none',
    'auto',
    'drop',
    'car',
    '3D',
    '3D',
    'drop',
    undefined,
    undefined,
    undefined,
  ]);
});

test('one field, or one field per subject; the last one for a subject counts', (t) => {
  const read = (fields: Readonly<Record<string, string>>) =>
    parseBySubject('shadow_type', Object.entries(fields), shadowTypeParser);
  t.deepEqual(read({ size: 'auto', shadow_types: 'x', 'shadow_opacity[car]': '80' }), { value: {} });
  t.deepEqual(read({ shadow_type: 'drop' }), { value: { any: 'drop' } });
  t.deepEqual(read({ 'shadow_type[person]': 'drop', 'shadow_type[Graphics]': '3D' }), {
    value: { person: 'drop', graphic: '3D' },
  });
  t.deepEqual(read({ 'shadow_type[car_part]': 'car', 'shadow_type[car]': 'none', shadow_type: 'auto' }), {
    value: { any: 'auto', car: 'none' },
  });
});

test('an invalid field is reported', (t) => {
  const read = (name: string, text: string) =>
    parseBySubject('shadow_type', [[name, text]], shadowTypeParser);
  t.deepEqual(read('shadow_type', 'long'), { invalid: 'long' });
  t.deepEqual(read('shadow_type[car]', '50'), { invalid: '50' });
  for (const name of [
    'shadow_type[dog]',
    'shadow_type[]',
    'shadow_type[auto]',
    'shadow_type[any]',
    'shadow_type[__proto__]',
  ]) {
    t.deepEqual(read(name, 'drop'), { invalid: name });
  }
});

const opacityOf = (
  subject: SubjectType,
  shadowType: BySubject<ShadowType>,
  { addShadow = false, shadowOpacity = {} as BySubject<ShadowOpacity> } = {},
) => dropShadowOpacity({ addShadow, shadowType, shadowOpacity }, subject);

const SUBJECTS: readonly SubjectType[] = [
  'person',
  'product',
  'car',
  'animal',
  'graphic',
  'transportation',
  'other',
];

test('no options, no shadow; add_shadow draws it for every subject', (t) => {
  for (const subject of SUBJECTS) {
    t.is(opacityOf(subject, {}), 0);
    t.is(opacityOf(subject, {}, { addShadow: true }), subject === 'car' ? 0.9 : 0.5);
  }
});

test('shadow_type takes precedence over add_shadow', (t) => {
  t.is(opacityOf('product', { any: 'none' }, { addShadow: true }), 0);
  t.is(opacityOf('product', { car: 'drop' }, { addShadow: true }), 0);
});

test('drop is drawn for every subject; none, car and 3D are drawn for no subject', (t) => {
  for (const subject of SUBJECTS) {
    t.true(opacityOf(subject, { any: 'drop' }) > 0);
    for (const type of ['none', 'car', '3D'] as const) t.is(opacityOf(subject, { any: type }), 0);
  }
});

test('auto draws for product, animal, graphic and other', (t) => {
  t.deepEqual(
    SUBJECTS.filter((subject) => opacityOf(subject, { any: 'auto' }) > 0),
    ['product', 'animal', 'graphic', 'other'],
  );
});

test('subjects without a field of their own get no shadow, unless there is a plain field', (t) => {
  t.is(opacityOf('animal', { person: 'drop' }), 0);
  t.is(opacityOf('person', { person: 'drop' }), 0.5);
  t.is(opacityOf('animal', { person: 'drop', any: 'drop' }), 0.5);
  t.is(opacityOf('person', { person: 'none', any: 'drop' }), 0);
});

test('opacity: of the subject, else the plain one, else 90 % for cars and 50 % for others', (t) => {
  const drop = { any: 'drop' } as const;
  t.is(opacityOf('car', drop, { shadowOpacity: { car: 0.8 } }), 0.8);
  t.is(opacityOf('car', drop, { shadowOpacity: { any: 0.2 } }), 0.2);
  t.is(opacityOf('car', drop, { shadowOpacity: { any: 0.2, car: 'auto' } }), 0.9);
  t.is(opacityOf('animal', drop, { shadowOpacity: { car: 0.8 } }), 0.5);
  t.is(opacityOf('animal', drop, { shadowOpacity: { any: 0 } }), 0);
});

test("the drop shadow's lengths are fractions of the longer side of the subject", (t) => {
  const subject = { left: 5, top: 7, width: 400, height: 1000 };
  const shadow = { opacity: 0.5, sigma: 20, offsetX: 0, offsetY: 20, fade: 0 };
  t.deepEqual(dropShadow(subject, 2000, 0.5), shadow);
  t.deepEqual(dropShadow(subject, 1007, 0.5), { ...shadow, fade: 30 });
  t.deepEqual(shadowExtent(subject, shadow), { left: -55, top: -33, width: 520, height: 1120 });
});

test("a shadow stays within the engine's limits, whatever the subject", (t) => {
  for (const height of [1, 3, 16, 50_000_000]) {
    const { sigma, offsetY, fade } = dropShadow({ left: 0, top: 0, width: 1, height }, height, 1);
    t.true(sigma >= Math.fround(0.1) && sigma <= 4096 && Math.fround(sigma) === sigma, `${height}`);
    t.true(offsetY >= 0 && offsetY <= 65_535 && fade >= 1, `${height}`);
  }
});

test("the extent is the engine's, contains the subject and follows from sigma and offset", (t) => {
  fc.assert(
    fc.property(imageAndSubject, ({ image, subject }) => {
      const shadow = dropShadow(subject, image.height, 0.5);
      const extent = shadowExtent(subject, shadow);
      t.deepEqual(extent, kernels.shadowExtent(subject, shadow));
      t.true(isInside(subject, extent));
      const reach = shadowReach(subject, 0.5);
      t.deepEqual(extent, {
        left: subject.left - reach.left,
        top: subject.top - reach.top,
        width: subject.width + reach.left + reach.right,
        height: subject.height + reach.top + reach.bottom,
      });
    }),
  );
});
