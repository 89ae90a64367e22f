import test from 'ava';
import { guideOf } from '../../src/cli/run/guide.ts';

test('--point and --box are read as the fields of the API are', (t) => {
  t.is(guideOf(undefined, undefined), undefined);
  const guide = guideOf(' 10% 20px; -0 5% ', '0 0 50% 100%');
  t.deepEqual(
    guide?.points.map(({ include }) => include),
    [true, false],
  );
  t.deepEqual(guide?.box?.x2, { value: 50, unit: '%' });
});

test('what cannot be understood is said with an example', (t) => {
  t.throws(() => guideOf('10 20', undefined), { message: /--point must be .*for example "50% 50%"/ });
  t.throws(() => guideOf(undefined, '1% 1%'), { message: /--box must be four lengths/ });
  t.throws(() => guideOf('-1% 1%', undefined), { message: /needs a point that is in the subject/ });
  t.truthy(guideOf('-1% 1%', '0 0 1% 1%'));
});
