import test from 'ava';
import { Attempts, sourceOf } from '../../src/limits/attempts.ts';

test('so many failures go through, then the source waits for the end of its window', (t) => {
  let now = 0;
  const attempts = new Attempts({ failures: 3, windowSeconds: 60 }, () => now);
  for (let i = 0; i < 3; i++) {
    t.is(attempts.wait('a'), 0);
    attempts.failed('a');
  }
  now = 10_500;
  t.is(attempts.wait('a'), 50);
  t.is(attempts.wait('b'), 0);
  now = 60_000;
  t.is(attempts.wait('a'), 0);
  attempts.failed('a');
  t.is(attempts.wait('a'), 0, 'a new window');
});

test('0 is no limit', (t) => {
  const attempts = new Attempts({ failures: 0, windowSeconds: 60 }, Date.now);
  for (let i = 0; i < 100; i++) attempts.failed('a');
  t.is(attempts.wait('a'), 0);
});

test('the oldest source is forgotten first', (t) => {
  const attempts = new Attempts({ failures: 1, windowSeconds: 60 }, () => 0);
  for (let i = 0; i <= 10_000; i++) attempts.failed(String(i));
  t.is(attempts.wait('0'), 0);
  t.is(attempts.wait('1'), 60);
  t.is(attempts.wait('10000'), 60);
});

test('an IPv4 address is a source, of IPv6 the network of a customer', (t) => {
  t.is(sourceOf('192.0.2.7'), '192.0.2.7');
  t.is(sourceOf('::ffff:192.0.2.7'), '192.0.2.7');
  t.is(sourceOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.is(sourceOf('2001:0db8:0001:0002::9'), '2001:db8:1:2::/64');
  t.is(sourceOf('2001:db8::1'), '2001:db8:0:0::/64');
  t.is(sourceOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
});
