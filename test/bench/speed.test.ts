import { writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { expectOk, openClient, parseServerTiming } from '../../bench/lib/client.ts';
import { freePort } from '../../bench/lib/freePort.ts';
import { run } from '../../bench/speed.ts';
import { allowAllImages, scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';
import { testFolder } from '../support/stores.ts';

test('reads Server-Timing and skips entries without a duration', (t) => {
  t.deepEqual(parseServerTiming('decode;dur=12.3, cache;desc="x", infer; dur=1600'), {
    decode: 12.3,
    infer: 1600,
  });
  t.deepEqual(parseServerTiming(''), {});
});

test('speed measures a running server: every case in every round, stages that add up to the request', async (t) => {
  const service = await startService(t);
  allowAllImages();
  const file = path.join(testFolder(t), 'scene.jpg');
  writeFileSync(file, await scene({ width: 800, height: 600 }));
  const messages: string[] = [];
  const { figures, parts, settings } = await run(
    {
      url: service.url,
      key: service.key,
      images: [file],
      mp: [0.1, 1],
      formats: ['png', 'zip'],
      rounds: 2,
      seconds: 60,
    },
    { progress: (text) => messages.push(text) },
  );
  t.like(settings, { server: service.url, images: 'scene', 'rounds done': 2 });
  const find = (name: string) => figures.find((figure) => figure.name === name);
  for (const name of ['0.1mp.png', '0.1mp.zip', '1mp.png', '1mp.zip', '1mp.preview.png']) {
    const request = find(`speed.${name}.request`);
    t.is(request?.samples.length, 2, name);
    t.true((request?.median ?? 0) > 0);
    const encode = find(`speed.${name}.encode`)?.median ?? 0;
    t.true(encode > 0 && encode < (request?.median ?? 0));
  }
  t.truthy(find('speed.1mp.preview_over_full')?.goal);
  t.deepEqual(
    parts.map(({ kind }) => kind),
    ['table', 'stacked', 'stacked', 'lines'],
  );
  t.true(messages.some((text) => text.startsWith('round 2 of 2')));
});

test('the time limit ends the rounds, but never the first one', async (t) => {
  const service = await startService(t);
  allowAllImages();
  const file = path.join(testFolder(t), 'scene.jpg');
  writeFileSync(file, await scene());
  const { settings } = await run(
    {
      url: service.url,
      key: service.key,
      images: [file],
      mp: [0.05],
      formats: ['jpg'],
      rounds: 50,
      seconds: 1e-6,
    },
    { progress: () => {} },
  );
  t.is(settings['rounds done'], 1);
});

test('a client reports errors by their codes, a lost connection by its own', async (t) => {
  const service = await startService(t);
  allowAllImages();
  const client = openClient({ url: service.url, key: 'wrong' });
  const refused = await client.cutout(await scene(), { size: 'full' });
  t.like(refused, { status: 403, code: 'auth_failed' });
  t.throws(() => expectOk(refused), { message: /403 auth_failed/ });
  await client.close();
  const nobody = openClient({ url: `http://127.0.0.1:${await freePort()}`, key: 'k' });
  t.like(await nobody.cutout(await scene(), {}), { status: 0, code: 'ECONNREFUSED' });
  await nobody.close();
});

test('every request differs, unless repeats are wanted', async (t) => {
  const service = await startService(t, { ttlSeconds: 600 });
  allowAllImages();
  const client = openClient(service);
  t.teardown(() => client.close());
  const image = await scene();
  const send = async (same: boolean) => (await client.cutout(image, { size: 'full' }, { same })).replayed;
  t.false(await send(false));
  t.false(await send(false));
  t.false(await send(true));
  t.true(await send(true));
});
