import test from 'ava';
import { openClient } from '../../bench/lib/client.ts';
import { startPlainServer } from '../../bench/lib/plainServer.ts';
import { figuresOf, rateOverPlain, type Upload } from '../../bench/repeats.ts';

const round = (perSecond: number) => ({ perSecond, times: [2, 4, 9], each: 0.5 });

const upload: Upload = {
  megapixels: 0.06,
  kilobytes: 18,
  rounds: {
    plain: [round(4000), round(1000), round(2000)],
    image: [round(1000), round(900), round(1000)],
    key: [round(2000), round(300), round(1000)],
  },
};

test('a rate is compared with that of the plain server in the same round', (t) => {
  // 0.25, 0.9 and 0.5.
  t.is(rateOverPlain(upload, 'image'), 0.5);
  t.is(
    rateOverPlain(
      { ...upload, rounds: { ...upload.rounds, image: [round(1000), round(950), round(1980)] } },
      'image',
    ),
    0.95,
  );
  t.is(rateOverPlain(upload, 'plain'), 1);
});

test('the goal holds for small uploads only', (t) => {
  const figures = figuresOf([upload, { ...upload, megapixels: 1 }]);
  t.deepEqual(
    figures.filter(({ unit }) => unit === '×').map(({ name, median, goal }) => [name, median, goal]),
    [
      ['repeats.0.06mp.image.over_plain', 0.5, { atLeast: 0.35 }],
      ['repeats.0.06mp.key.over_plain', 0.5, { atLeast: 0.35 }],
      ['repeats.1mp.image.over_plain', 0.5, undefined],
      ['repeats.1mp.key.over_plain', 0.5, undefined],
    ],
  );
  t.is(figures[0]?.median, 4);
});

test('the plain server reads a body and answers with the given bytes', async (t) => {
  const body = Buffer.from('of any kind');
  const server = await startPlainServer({ type: 'image/jpeg', body });
  const client = openClient({ url: server.url, key: 'none' });
  try {
    const answer = await client.cutout(Buffer.alloc(2e6, 7), { size: 'preview' });
    t.is(answer.status, 200);
    t.deepEqual(answer.body, body);
    t.false(answer.replayed);
  } finally {
    await client.close();
    await server.close();
  }
});
