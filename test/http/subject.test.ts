import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { errorOf, eventually, form, startService } from '../fixtures/service.ts';

test('points and boxes reach the selector, and its mask the engine, in every type of body', async (t) => {
  const service = await startService(t, { credits: 0, freePreviews: 100, selection: true });
  const image = await scene({ format: 'png' });
  const json = {
    image_file_b64: image.toString('base64'),
    subject_points: '75px 100px; -50% 0',
    subject_box: '0 0 150px 100%',
  };
  const bodies: readonly (readonly [string | FormData, Record<string, string>])[] = [
    [form({ ...json, image_file_b64: '', image_file: image }), {}],
    [JSON.stringify(json), { 'Content-Type': 'application/json' }],
    [new URLSearchParams(json).toString(), { 'Content-Type': 'application/x-www-form-urlencoded' }],
  ];
  for (const [body, headers] of bodies) {
    t.is((await service.post(body, headers)).status, 200);
    const { embedding: _, ...asked } = service.engine.selections.at(-1) ?? {};
    t.deepEqual(asked, {
      points: [
        { x: 0.25, y: 0.5, include: true },
        { x: 0.5, y: 0, include: false },
      ],
      box: { x1: 0, y1: 0, x2: 0.5, y2: 1 },
    });
    t.is(service.engine.plans.at(-1)?.mask?.width, 8);
  }
  t.is((await service.post(form({ image_file: image, subject_points: '1% 1%' }))).status, 200);
  t.is((await service.post(form({ image_file: image }))).status, 200);
  t.is(service.engine.plans.at(-1)?.mask, undefined);
  t.is(service.engine.selections.length, 7, 'a box with points: first the box alone');
  await eventually(() => service.lines().length === 5);
  t.deepEqual(
    service.lines().map(({ guidance }) => guidance),
    ['box', 'box', 'box', 'points', undefined],
  );
});

test('while the networks for points are loaded, such requests take no slot from others', async (t) => {
  const service = await startService(t, { selection: true, running: 2 });
  let loaded = () => {};
  service.engine.loading = new Promise((resolve) => {
    loaded = resolve;
  });
  const image = await scene({ format: 'png' });
  const prompted = ['10% 10%', '20% 20%', '30% 30%', '40% 40%'].map((points) =>
    service.post(form({ image_file: image, subject_points: points })),
  );
  await eventually(() => service.calls() === 4);
  t.is(service.scheduler.stats.running, 0);
  t.is((await service.post(form({ image_file: image }))).status, 200);
  t.is(service.engine.encoded, 0);
  loaded();
  for (const answer of await Promise.all(prompted)) t.is(answer.status, 200);
});

test('who cannot pay loads no networks for points', async (t) => {
  const service = await startService(t, { selection: true, credits: 0, freePreviews: 0 });
  service.engine.loading = new Promise(() => {});
  const answer = await service.post(
    form({ image_file: await scene({ format: 'png' }), subject_points: '1% 1%' }),
  );
  t.is(answer.status, 402);
});

test('an image is encoded once for an account while results are kept', async (t) => {
  const service = await startService(t, { ttlSeconds: 600, selection: true });
  const image = await scene({ format: 'png' });
  const other = await scene({ format: 'png', width: 90, height: 60 });
  const ask = async (file: Buffer, points: string) => {
    const answer = await service.post(form({ image_file: file, subject_points: points }));
    t.is(answer.status, 200);
    return answer.headers.get('idempotent-replayed') === 'true';
  };
  t.false(await ask(image, '10% 10%'));
  t.false(await ask(image, '20% 10%'));
  t.false(await ask(image, '20% 10%; -30% 30%'));
  t.deepEqual([service.engine.encoded, service.engine.selections.length], [1, 3]);
  t.true(await ask(image, '10%  10%'), 'the same points in other words are the same request');
  t.is(service.engine.selections.length, 3);
  t.false(await ask(other, '10% 10%'));
  t.is(service.engine.encoded, 2);
  const account = (await service.stores.accounts.create('Other')).id;
  const { key } = await service.stores.accounts.createKey(account);
  const answer = await service.post(form({ image_file: image, size: 'preview', subject_points: '5% 5%' }), {
    'X-Api-Key': key,
  });
  t.is(answer.status, 200);
  t.is(service.engine.encoded, 3, 'of another account');
});

test('requests at the same time share one run of the encoder, and the last that leaves ends it', async (t) => {
  const service = await startService(t, { ttlSeconds: 600, selection: true, running: 4 });
  const image = await scene({ format: 'png' });
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  const ask = (points: string, signal?: AbortSignal) =>
    fetch(`${service.url}/v1.0/cutout`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: form({ image_file: image, subject_points: points }),
      ...(signal && { signal }),
    });
  const leaving = new AbortController();
  const left = ask('1% 1%', leaving.signal).catch(() => undefined);
  await eventually(() => service.engine.encoded === 1);
  leaving.abort();
  await left;
  await eventually(() => service.engine.cancelled === 1);
  const both = [ask('2% 2%'), ask('3% 3%')];
  await eventually(() => service.engine.encoded === 2);
  release();
  for (const answer of await Promise.all(both)) t.is(answer.status, 200);
  t.is(service.engine.encoded, 2);
  t.is(service.engine.selections.length, 2);
});

test('points and boxes that say nothing usable are refused, and cost nothing', async (t) => {
  const service = await startService(t, { selection: true, credits: 10 });
  const image = await scene({ format: 'png' });
  const code = async (fields: Readonly<Record<string, string | Buffer>>) => {
    const answer = await service.post(form({ image_file: image, size: 'full', ...fields }));
    t.is(answer.status, 400);
    return errorOf(t, answer);
  };
  t.is((await code({ subject_points: '-5% 5%' })).code, 'invalid_subject_points');
  t.is((await code({ subject_points: '301px 5%' })).code, 'invalid_subject_points');
  t.is((await code({ subject_points: `${'9'.repeat(2000)}px 5%` })).code, 'invalid_subject_points');
  t.is((await code({ subject_points: `5% 5%;${' '.repeat(3000)}5% 5%` })).code, 'invalid_subject_points');
  t.is((await code({ subject_box: '0 0 301px 5px' })).code, 'invalid_subject_box');
  t.is((await code({ subject_box: '5px 5px 5px 5px' })).code, 'invalid_subject_box');
  const both = await code({ subject_points: '5% 5%', mask_file: image, type: 'nothing' });
  t.is(both.code, 'multiple_subject_sources');
  t.is((await code({ subject_box: '0 0 1% 1%', mask_file_b64: 'AAAA' })).code, 'multiple_subject_sources');
  t.is((await service.balance()).credits, 10);
  t.is(service.engine.encoded, 0);
});

test('text that is no list of points is refused, however long or strange, on both addresses', async (t) => {
  const service = await startService(t, { selection: true, credits: 10 });
  const image = await scene({ format: 'png' });
  const texts = [
    Array(10_000).fill('5% 5%').join(';'),
    Array(33).fill('5% 5%').join(';'),
    'NaN NaN',
    'NaN% 5%',
    'Infinity% 5%',
    '1e400px 5%',
    '-',
    '-;-',
    '-5% 5%; -6% 6%',
    '--5% 5%',
    '5%',
    '5% 5% 5%',
    ';',
    '5% -5%',
    '5% 100.01%',
    '\u0000 5%',
  ];
  for (const path of ['/v1.0/cutout', '/v1.0/removebg']) {
    for (const subject_points of texts) {
      const answer = await fetch(`${service.url}${path}`, {
        method: 'POST',
        headers: { 'X-Api-Key': service.key },
        body: form({ image_file: image, subject_points }),
      });
      t.is(answer.status, 400, `${path} ${subject_points.slice(0, 40)}`);
      t.is((await errorOf(t, answer)).code, 'invalid_subject_points');
    }
  }
  t.is((await service.balance()).credits, 10);
  t.is(service.engine.encoded, 0);
});

test('an image of one pixel has points and a box too', async (t) => {
  const service = await startService(t, { selection: true });
  const image = await scene({ format: 'png', width: 1, height: 1, subject: 'none' });
  for (const fields of [
    { subject_points: '0 0' },
    { subject_points: '100% 1px' },
    { subject_box: '0 0 1px 1px' },
  ]) {
    const answer = await service.post(form({ image_file: image, ...fields }));
    t.is((await errorOf(t, answer)).code, 'unknown_foreground', 'everything before that check passed');
  }
  t.is(service.engine.selections.length, 3);
});

test('a repeated Idempotency-Key gives the first result again, without another question or charge', async (t) => {
  const service = await startService(t, { selection: true, ttlSeconds: 600, credits: 10 });
  const image = await scene({ format: 'png' });
  const ask = (points: string) =>
    service.post(form({ image_file: image, size: 'full', subject_points: points }), {
      'Idempotency-Key': 'click-1',
    });
  t.is((await ask('10% 10%')).status, 200);
  const again = await ask('10% 10%');
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is((await service.balance()).credits, 9);
  t.is((await ask('90% 10%')).headers.get('idempotent-replayed'), 'true');
  t.is(service.engine.selections.length, 1);
});

test('the output of the networks is kept for the next click on an image, and for nothing else', async (t) => {
  const service = await startService(t, { ttlSeconds: 600, selection: true });
  const image = await scene({ format: 'png' });
  const other = await scene({ format: 'png', width: 90, height: 60 });
  const ask = async (fields: Readonly<Record<string, string | Buffer>>) => {
    t.is((await service.post(form({ size: 'full', ...fields }))).status, 200);
    const { returnOutput, cached } = service.engine.plans.at(-1) ?? {};
    return [returnOutput, cached?.data[0]];
  };
  t.deepEqual(await ask({ image_file: image }), [undefined, undefined], 'without points');
  t.deepEqual(await ask({ image_file: image, subject_points: '5% 5%' }), [true, undefined]);
  t.deepEqual(await ask({ image_file: image, subject_points: '6% 6%' }), [true, 2], 'of the second matte');
  t.deepEqual(await ask({ image_file: other, subject_points: '5% 5%' }), [true, undefined], 'another image');
});

test('without the networks the request says what is possible', async (t) => {
  const service = await startService(t, {});
  const answer = await service.post(form({ image_file: await scene(), subject_box: '0 0 50% 50%' }));
  t.is(answer.status, 400);
  const { code, detail } = await errorOf(t, answer);
  t.is(code, 'subject_selection_unavailable');
  t.regex(detail ?? '', /mask_file/);
});

test('a server of 2 GB has memory for points', async (t) => {
  // What is left for requests with CUTOUT_MEMORY_LIMIT=2G, less a quarter.
  const memory = { room: 600e6, largestWork: 600e6 };
  const service = await startService(t, { credits: 0, freePreviews: 100, selection: true, memory });
  const image = await scene({ format: 'png' });
  t.is((await service.post(form({ image_file: image, subject_points: '1% 1%' }))).status, 200);
});
