import test from 'ava';
import { DownloadLimit, type DownloadSlot } from '../../src/limits/downloads.ts';

const leave = (slot: DownloadSlot) => {
  if (slot.outcome === 'admitted') slot.leave();
};

test('downloads are limited per account and overall', (t) => {
  const limit = new DownloadLimit({ perAccount: 2, total: 3 });
  const [first, second] = [limit.enter('a'), limit.enter('a')];
  t.is(second.outcome, 'admitted');
  t.is(limit.enter('a').outcome, 'account');
  const third = limit.enter('b');
  t.is(third.outcome, 'admitted');
  t.is(limit.enter('b').outcome, 'total');
  leave(first);
  leave(first);
  t.is(limit.running, 2);
  t.is(limit.enter('b').outcome, 'admitted');
  t.is(limit.enter('a').outcome, 'total');
});

test('0 is no limit', (t) => {
  const limit = new DownloadLimit({ perAccount: 0, total: 0 });
  const slots = Array.from({ length: 1000 }, () => limit.enter('a'));
  t.true(slots.every(({ outcome }) => outcome === 'admitted'));
  t.is(limit.running, 1000);
  slots.forEach(leave);
  t.is(limit.running, 0);
});
