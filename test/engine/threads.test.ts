import test from 'ava';
import { chooseThreads, describeThreads } from '../../src/engine/threads.ts';

test('every machine gets at least one thread of each kind, and no more runs than cores', (t) => {
  for (let cores = 1; cores <= 128; cores++) {
    const { workers, intraOpThreads, pixelThreads } = chooseThreads({}, cores);
    t.true(workers >= 1 && workers <= cores && intraOpThreads >= 1 && intraOpThreads <= cores);
    t.is(pixelThreads, cores);
    t.true(workers + intraOpThreads - 1 >= cores, 'no core stays idle under load');
  }
});

test('wishes are taken as they are', (t) => {
  t.deepEqual(chooseThreads({ workers: 3, intraOpThreads: 5 }, 2), {
    workers: 3,
    intraOpThreads: 5,
    pixelThreads: 2,
  });
  t.deepEqual(chooseThreads({ workers: 1 }, 16), { workers: 1, intraOpThreads: 16, pixelThreads: 16 });
  t.deepEqual(chooseThreads({ intraOpThreads: 7 }, 16), { workers: 4, intraOpThreads: 7, pixelThreads: 16 });
});

test('a GPU needs one thread a run', (t) => {
  t.is(chooseThreads({ provider: 'cuda' }, 16).intraOpThreads, 1);
});

test('the start-up line names every number', (t) => {
  t.is(
    describeThreads({ workers: 1, intraOpThreads: 2, pixelThreads: 2 }, 2),
    '2 cores: 1 worker x 2 threads, 2 pixel threads',
  );
});
