import test from 'ava';
import { openClient } from '../../bench/lib/client.ts';
import { freePort } from '../../bench/lib/freePort.ts';
import { mixed, mixedSender } from '../../bench/lib/mixed.ts';
import { memory, resetPeak } from '../../bench/lib/server.ts';
import { growth, run } from '../../bench/memory.ts';
import { allowAllImages, scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';

test('growth is what 100 requests add after everything is loaded', (t) => {
  const points = [
    [20, 500],
    [100, 700],
    [200, 702],
    [300, 704],
  ] as const;
  t.true(Math.abs(growth(points) - 2) < 1e-9);
});

test('the mix has every format, sizes up to 50 MP and errors, and any length', (t) => {
  const day = mixed(20);
  t.deepEqual(mixed(45).slice(20, 40), day);
  t.is(mixed(45).length, 45);
  const formats = new Set(day.flatMap(({ fields }) => fields['format'] ?? []));
  t.deepEqual([...formats].sort(), ['jpg', 'png', 'tiff', 'webp', 'zip']);
  t.true(day.some(({ status }) => status === 400) && day.some(({ megapixels }) => megapixels === 50));
});

test('every request of the mix gets the answer it names', async (t) => {
  const service = await startService(t, { credits: 100 });
  allowAllImages();
  const client = openClient(service);
  t.teardown(() => client.close());
  const small = await scene({ width: 400, height: 300 });
  const send = mixedSender(client, { names: ['scene'], jpeg: async () => small });
  // The engine of these tests does not compose.
  const plain = mixed(20).filter(
    ({ fields }) => !['bg_color', 'crop', 'scale'].some((name) => name in fields),
  );
  t.true(plain.length > 12);
  for (const one of plain) await t.notThrowsAsync(() => send(one), one.label);
  const [first] = mixed(1);
  if (first) await t.throwsAsync(() => send({ ...first, status: 400 }), { message: /expected 400, got 200/ });
});

test('peak memory is that since it was reset', async (t) => {
  const block = Buffer.alloc(80e6, 1);
  t.is(block[79_999_999], 1);
  const before = await memory(process.pid);
  t.true(before.now > 80 && before.peak > 80);
  await resetPeak(process.pid);
  const after = await memory(process.pid);
  t.true(after.peak < after.now + 40);
});

test('a server at an address needs its process', async (t) => {
  const options = {
    url: `http://127.0.0.1:${await freePort()}`,
    key: 'k',
    mp: [1],
    requests: 1,
    rounds: 1,
    seconds: 1,
  };
  await t.throwsAsync(() => run(options, { progress: () => {} }), { message: /--pid/ });
});
