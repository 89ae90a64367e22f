import test from 'ava';
import sharp from 'sharp';
import { request } from 'undici';
import { scene } from '../fixtures/images.ts';
import { errorOf, form, startService } from '../fixtures/service.ts';

/** Images that differ, all smaller than a preview. */
const imageOf = (serial: number) =>
  sharp({ create: { width: 20 + serial, height: 16, channels: 3, background: '#c82840' } })
    .png()
    .toBuffer();

const cases = [
  { size: 'preview', freePreviews: 0, results: 40, charged: { '0.25': 40 } },
  { size: 'full', freePreviews: 0, results: 10, charged: { '1': 10 } },
  { size: 'preview', freePreviews: 7, results: 47, charged: { '0': 7, '0.25': 40 } },
];

for (const { size, freePreviews, results, charged } of cases) {
  test(`200 concurrent calls with 10 credits and ${freePreviews} free: ${results} of ${size}, the rest 402`, async (t) => {
    const service = await startService(t, {
      credits: 10,
      freePreviews,
      rate: 0,
      ttlSeconds: 600,
    });
    const bodies = await Promise.all(
      Array.from({ length: 200 }, async (_, serial) => form({ image_file: await imageOf(serial), size })),
    );
    const answers = await Promise.all(bodies.map((body) => service.post(body)));
    const amounts: Record<string, number> = {};
    for (const answer of answers) {
      if (answer.status === 200) {
        const amount = answer.headers.get('x-credits-charged') ?? '?';
        amounts[amount] = (amounts[amount] ?? 0) + 1;
      } else {
        t.is(answer.status, 402);
        t.is((await errorOf(t, answer)).code, 'insufficient_credits');
      }
    }
    t.deepEqual(amounts, charged);
    t.is(service.engine.started, results);
    t.deepEqual(await service.balance(), { credits: 0, freeCalls: 0 });
    t.deepEqual(await service.stores.ledger.verify(), []);
  });
}

test("a repeat costs at most six times the cheapest request, HTTP and this process' client included", async (t) => {
  const service = await startService(t, { credits: 1, freePreviews: 0, rate: 0, ttlSeconds: 600 });
  const image = (await scene({ width: 120, height: 80 })).toString('base64');
  const repeat = async () => {
    const answer = await request(`${service.url}/v1.0/cutout`, {
      method: 'POST',
      headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
      body: JSON.stringify({ image_file_b64: image, size: 'full' }),
    });
    await answer.body.arrayBuffer();
    return [answer.statusCode, answer.headers['idempotent-replayed']];
  };
  const least = async () => {
    const answer = await request(`${service.url}/health/live`);
    await answer.body.arrayBuffer();
    return [answer.statusCode, answer.headers['idempotent-replayed']];
  };
  t.deepEqual(await repeat(), [200, undefined]);
  /** Milliseconds of processor time for one of them, a hundred at once. */
  const cost = async (one: typeof repeat, replayed?: string) => {
    const used = process.cpuUsage();
    for (let wave = 0; wave < 3; wave++)
      for (const answer of await Promise.all(Array.from({ length: 100 }, one)))
        t.deepEqual(answer, [200, replayed]);
    const { user, system } = process.cpuUsage(used);
    return (user + system) / 1000 / 300;
  };
  // Alternating, the best of each: other load and the speed of the machine affect both.
  let [repeats, bare] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 3; round++) {
    bare = Math.min(bare, await cost(least));
    repeats = Math.min(repeats, await cost(repeat, 'true'));
  }
  t.log(
    `${repeats.toFixed(2)} ms of processor time a repeat, ${(repeats / bare).toFixed(1)} of the least request`,
  );
  t.true(repeats <= 6 * bare, `${repeats} ms, ${bare} ms`);
  t.is(service.engine.started, 1);
  t.is((await service.balance()).credits, 0);
});
