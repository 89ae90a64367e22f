import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { postgresMissing, startPostgres } from '../fixtures/postgres.ts';
import { errorOf, eventually, form, startService } from '../fixtures/service.ts';

unless(postgresMissing)('while PostgreSQL is away: 503 with Retry-After, and nothing is lost', async (t) => {
  t.timeout(100_000);
  const postgres = await startPostgres();
  t.teardown(() => postgres.remove());
  const databaseUrl = await postgres.createDatabase();
  const service = await startService(t, { databaseUrl, credits: 10, freePreviews: 0 });
  const image = await scene();
  const post = (size: string) => service.post(form({ image_file: image, size }));
  t.is((await post('full')).status, 200);

  // During the work: it was reserved, and cannot be settled.
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  service.engine.hold = gate;
  const caught = post('full');
  await eventually(() => service.engine.running === 1);
  await postgres.stop();
  go();
  service.engine.hold = undefined;
  for (const answer of [await post('full'), await caught]) {
    t.is(answer.status, 503);
    t.true(Number(answer.headers.get('retry-after')) >= 1);
    t.is((await errorOf(t, answer)).code, 'service_unavailable');
  }
  t.false(service.text().includes('cutout@'), 'who it connects as is not in the log');

  await postgres.start();
  t.is((await post('preview')).status, 200);
  // A release that still waited for the database when it came back is taken up by a later sweep.
  await eventually(async () => {
    await service.stores.ledger.sweep();
    return (await service.stores.ledger.openReservations()) === 0;
  });
  t.is((await service.balance()).credits, 10 - 1 - 0.25);
  t.deepEqual(await service.stores.ledger.verify(), []);
});
