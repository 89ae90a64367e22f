import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { PixelJobs } from '../../src/limits/pixelJobs.ts';
import { eventually } from '../fixtures/service.ts';

test('a job counts as overdue from the time that it may take until it ends', async (t) => {
  const jobs = new PixelJobs({ threads: 3, onStuck: () => t.fail() });
  const inTime = jobs.watch('a')(1e6);
  const late = jobs.watch('a')(1);
  await eventually(() => jobs.overdue === 1);
  t.true(jobs.isOverdue('a'));
  t.false(jobs.isOverdue('b'));
  late();
  late();
  inTime();
  t.is(jobs.overdue, 0);
  t.false(jobs.isOverdue('a'));
  jobs.watch('a')(1)();
  await sleep(10);
  t.is(jobs.overdue, 0);
});

test('when overdue jobs hold more than half of the threads, that is told once', async (t) => {
  const told: number[] = [];
  const jobs = new PixelJobs({ threads: 4, onStuck: (overdue) => told.push(overdue) });
  jobs.watch('a')(1);
  jobs.watch('b')(1);
  await eventually(() => jobs.overdue === 2);
  t.deepEqual(told, []);
  jobs.watch('c')(1);
  jobs.watch('d')(1);
  await eventually(() => jobs.overdue === 4);
  t.deepEqual(told, [3]);
});

test('a pause of the machine makes no job overdue', async (t) => {
  const jobs = new PixelJobs({ threads: 1, onStuck: () => t.fail() });
  const ended = jobs.watch('a')(2000);
  // As a pause does: no timer runs, and time passes.
  const end = performance.now() + 2500;
  while (performance.now() < end);
  await sleep(1);
  t.is(jobs.overdue, 0);
  ended();
});
