import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { modelsFolder, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { eventually } from '../fixtures/service.ts';

const clients = 2;

/** Noise, so that the answer exceeds the system's buffers. No two are equal. */
const imageOf = (number: number) =>
  sharp({
    create: {
      width: 2000 + number,
      height: 1600,
      channels: 3,
      background: '#000',
      noise: { type: 'gaussian', mean: 60, sigma: 40 },
    },
  })
    .jpeg({ quality: 95 })
    .toBuffer();

/** Seconds of grace in the tests of its end, and whether the process ended within them. */
const grace = 6;
const endsInTime = async ({ child, ended }: Serving): Promise<boolean> => {
  const from = performance.now();
  child.kill('SIGTERM');
  await ended;
  return performance.now() - from < grace * 1000;
};

/** Requests an image and takes the first bytes of the answer; `rest` takes the others and returns whether all arrived. */
async function begun(port: number, key: string, number: number): Promise<{ rest: () => Promise<boolean> }> {
  const image = (await imageOf(number)).toString('base64');
  const text = JSON.stringify({ image_file_b64: image, size: 'full', format: 'png' });
  const socket = await dial(port);
  const chunks: Buffer[] = [];
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.once('data', () => socket.pause());
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
  socket.write(
    `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );
  await eventually(() => chunks.length > 0);
  return {
    rest: async () => {
      socket.resume();
      await closed;
      const all = Buffer.concat(chunks);
      const head = all.subarray(0, all.indexOf('\r\n\r\n') + 4);
      return all.length === head.length + Number(/Content-Length: (\d+)/i.exec(head.toString('latin1'))?.[1]);
    },
  };
}

for (const [what, timeout, taken] of [
  ['answers that are being sent may be taken', '600', true],
  ['answers that nobody takes are cut off, and stay paid for', '0', false],
] as const)
  test.serial(`SIGTERM: ${what}`, async (t) => {
    t.timeout(180_000);
    const data = temporaryFolder(t);
    const env = {
      CUTOUT_DATA_DIR: data,
      CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
      CUTOUT_STOP_TIMEOUT: timeout,
    };
    const server = await startServing(t, env);
    const key = readFileSync(path.join(data, 'local-key'), 'utf8').trim();
    const sending = await Promise.all(
      Array.from({ length: clients }, (_, number) => begun(server.port, key, number)),
    );
    server.child.kill('SIGTERM');
    await eventually(() => server.stdout().includes('"stopping"'));
    if (!taken) await server.ended;
    for (const { rest } of sending) t.is(await rest(), taken);
    const { code, stdout } = await server.ended;
    t.is(code, 0);
    t.true(stdout.toString().includes(`"inTime":${taken},"msg":"stopped"`));
    t.false(stdout.toString().includes('"level":50'));
    const stores = await openStores({ dataDir: data, billing: standardBilling });
    t.teardown(() => stores.close());
    t.is(await stores.ledger.openReservations(), 0);
    t.is((await stores.ledger.balance('local')).credits as number, credits(100_000 - clients) as number);
    t.deepEqual(await stores.ledger.verify(), []);
  });

test.serial('SIGTERM: uploads that stall do not outlast the grace period', async (t) => {
  const data = temporaryFolder(t);
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    CUTOUT_STOP_TIMEOUT: String(grace),
  });
  const key = readFileSync(path.join(data, 'local-key'), 'utf8').trim();
  const heads = [
    `POST /v1.0/cutout HTTP/1.1\r\nX-Api-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n`,
    `POST /v1.0/improve HTTP/1.1\r\nX-Api-Key: ${key}\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n`,
    'POST /console/api/link HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n',
  ];
  for (const head of heads) {
    const socket = await dial(server.port);
    socket.on('error', () => {});
    socket.write(`${head}Host: x\r\n\r\n`);
  }
  t.is((await fetch(`${server.url}/health/ready`)).status, 200);
  t.true(await endsInTime(server));
  t.true(server.stdout().includes('"inTime":false,"msg":"stopped"'));
});
