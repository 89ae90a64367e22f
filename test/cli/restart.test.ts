import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { openClient } from '../../bench/lib/client.ts';
import { freePort } from '../../bench/lib/freePort.ts';
import { nginxMissing, startNginx } from '../../deploy/local/nginx.ts';
import { modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { eventually } from '../fixtures/service.ts';

const key = 'key-of-the-rolling-restart';

test.serial('a draining node reports that it is not ready, and answers everything', async (t) => {
  const data = temporaryFolder(t);
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_API_KEY: key,
    CUTOUT_DRAIN_SECONDS: '10',
  });
  const client = openClient({ url: server.url, key });
  server.child.kill('SIGTERM');
  let ready = await fetch(`${server.url}/health/ready`);
  await eventually(async () => {
    ready = await fetch(`${server.url}/health/ready`);
    return ready.status === 503;
  });
  t.is(ready.headers.get('connection'), 'close');
  t.is((await fetch(`${server.url}/health/live`)).status, 200);
  t.is((await client.cutout(await scene(), { size: 'full' })).code, 'ok');
  await client.close();
  t.is((await server.ended).code, 0);

  // Ctrl-C does not drain.
  const other = await startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: path.join(data, 'models'),
    CUTOUT_DRAIN_SECONDS: '60',
  });
  other.child.kill('SIGINT');
  t.is((await other.ended).code, 0);
});

test.serial('nodes behind nginx are restarted one after another: not one request fails', async (t) => {
  if (nginxMissing) {
    sayLeftOut(t, nginxMissing);
    return;
  }
  t.timeout(180_000);
  const folder = temporaryFolder(t);
  const models = modelsFolder(path.join(folder, 'models'));
  const ports = [await freePort(), await freePort()];
  const start = (port: number): Promise<Serving> =>
    startServing(t, {
      CUTOUT_PORT: String(port),
      CUTOUT_DATA_DIR: path.join(folder, String(port)),
      CUTOUT_MODELS_DIR: models,
      CUTOUT_API_KEY: key,
      CUTOUT_DRAIN_SECONDS: '1',
      CUTOUT_RATE_LIMIT: '0',
    });
  const nodes = await Promise.all(ports.map(start));
  const balancer = await startNginx(await freePort(), ports);
  t.teardown(() => balancer.stop());
  const client = openClient({ url: balancer.url, key });
  const image = await scene();
  const codes: Record<string, number> = {};
  let over = false;
  const loop = async () => {
    while (!over) {
      const { code } = await client.cutout(image, { size: 'full' });
      codes[code] = (codes[code] ?? 0) + 1;
    }
  };
  const loops = [1, 2, 3, 4].map(loop);
  for (const [at, port] of ports.entries()) {
    await sleep(1000);
    nodes[at]?.child.kill('SIGTERM');
    t.is((await nodes[at]?.ended)?.code, 0);
    nodes[at] = await start(port);
  }
  await sleep(1000);
  over = true;
  await Promise.all(loops);
  await client.close();
  t.log(`${codes['ok']} requests`);
  t.deepEqual(Object.keys(codes), ['ok']);
  t.true((codes['ok'] ?? 0) > 20);
});
