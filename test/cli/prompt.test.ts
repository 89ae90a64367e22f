import test from 'ava';
import { promptOf } from '../../src/cli/run/cutter.ts';

test('--point and --box are read as the fields of the API are', (t) => {
  t.is(promptOf(undefined, undefined), undefined);
  const prompt = promptOf(' 10% 20px; -0 5% ', '0 0 50% 100%');
  t.deepEqual(
    prompt?.points.map(({ include }) => include),
    [true, false],
  );
  t.deepEqual(prompt?.box?.x2, { value: 50, unit: '%' });
});

test('what cannot be understood is said with an example', (t) => {
  t.throws(() => promptOf('10 20', undefined), { message: /--point must be .*for example "50% 50%"/ });
  t.throws(() => promptOf(undefined, '1% 1%'), { message: /--box must be four lengths/ });
  t.throws(() => promptOf('-1% 1%', undefined), { message: /needs a point that is in the subject/ });
  t.truthy(promptOf('-1% 1%', '0 0 1% 1%'));
});
