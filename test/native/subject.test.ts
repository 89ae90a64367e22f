import test from 'ava';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { halves, Networks } from '../fixtures/engineSetup.ts';
import type { Image } from './kernelsAddon.ts';
import { openLevels } from './levels.ts';

/** The detector's features as exported by test/native/subject.cc. */
interface SubjectAddon {
  openDetector(runtimePath: string, spec: { readonly path: string }, threads: number): object;
  subjectFeatures(
    detector: object,
    image: Image,
    matte: { readonly data: Float32Array; readonly width: number; readonly height: number },
    threads: number,
  ): Float32Array;
}

const addon = openLevels()[0] as unknown as SubjectAddon;

const networks = new Networks();
test.after.always(() => networks.remove());

const detector = networks.spec('detector', { gain: 0.1, bias: -12.75, sigmoid: true, secondOutput: true });

/** Numbers that describe the whole image, and those that describe a region of it. */
const wholeCount = 6;
const regionCount = 20;
/** Layout: the class and three maps, both under the matte, then the statistics. */
const under = 0;
const red = 1;
const whole = 4;
const inside = whole + wholeCount;
const outside = inside + regionCount;

/** 1 in the left or the right half. */
const matteOf = (half: 'left' | 'right') => ({
  data: Float32Array.from({ length: 64 * 64 }, (_, at) => +(at % 64 < 32 === (half === 'left'))),
  width: 64,
  height: 64,
});

test('features are those under the matte, beside it, and of the whole image', (t) => {
  const opened = addon.openDetector(defaultRuntimePath(), detector, 1);
  const image = { ...halves(100, 80), stride: 400 };
  const before = Buffer.from(image.data);
  const left = addon.subjectFeatures(opened, image, matteOf('left'), 0);
  const right = addon.subjectFeatures(opened, image, matteOf('right'), 2);
  t.is(left.length, outside + regionCount);
  t.true((left[under] ?? 0) > 0.99);
  t.true((right[under] ?? 1) < 0.1);
  t.true(Math.abs((left[red] ?? 0) - 255) < 1);
  t.true((right[red] ?? 255) < 1);
  t.deepEqual(left.slice(whole, inside), right.slice(whole, inside));
  t.deepEqual(left.slice(inside, outside), right.slice(outside));
  t.deepEqual(left.slice(outside), right.slice(inside, outside));
  t.notDeepEqual(left.slice(inside, outside), left.slice(outside));
  t.deepEqual(Buffer.from(image.data), before);
});
