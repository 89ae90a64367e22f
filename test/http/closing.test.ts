import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import test from 'ava';
import sharp from 'sharp';
import type { DeliveryOutcome } from '../../src/idempotency/sharedResult.ts';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { eventually, resultOf, type Service, startService } from '../fixtures/service.ts';

/** Noise, so that the answer exceeds the system's buffers. */
const large = () =>
  sharp({
    create: {
      width: 2000,
      height: 1600,
      channels: 3,
      background: '#000',
      noise: { type: 'gaussian', mean: 100, sigma: 40 },
    },
  })
    .jpeg({ quality: 95 })
    .toBuffer();

function post(key: string, image: Buffer, header = ''): string {
  const text = JSON.stringify({ image_file_b64: image.toString('base64'), size: 'full', format: 'png' });
  return `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n${header}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
}

const account = (key: string) => `GET /v1.0/account HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`;

/** The service's response objects so far. */
function answersOf({ server }: Service): ServerResponse[] {
  const answers: ServerResponse[] = [];
  server.on('request', (_req: IncomingMessage, res: ServerResponse) => void answers.push(res));
  return answers;
}

/** Everything received on a connection until it ends. */
function received(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
  socket.resume();
  return new Promise((resolve) => socket.once('close', () => resolve(Buffer.concat(chunks))));
}

/** Bodies of the answers in `bytes`, by their Content-Length; the last one may be incomplete. */
function bodies(bytes: Buffer): { length: number; got: number }[] {
  const all = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at) + 4;
    const length = Number(/Content-Length: (\d+)/i.exec(bytes.toString('latin1', at, end))?.[1]);
    all.push({ length, got: Math.min(length, bytes.length - end) });
    at = end + length;
  }
  return all;
}

/** A client that does not yet read the answer being sent to it. */
async function beingSent(service: Service, request: string): Promise<Socket> {
  const answers = answersOf(service);
  const socket = await dial(service.address.port);
  socket.on('error', () => {});
  socket.pause();
  socket.write(request);
  await eventually(() => {
    const [first] = answers;
    return first?.writableEnded === true && (first.socket?.writableLength ?? 0) > 1e6;
  }, 60_000);
  return socket;
}

for (const [what, header] of [
  ['a kept connection', ''],
  ['a connection that it ends', 'Connection: close\r\n'],
] as const)
  test.serial(`closing lets a client take the answer being sent to it on ${what}`, async (t) => {
    const service = await startService(t, { credits: 1, freePreviews: 0 });
    const socket = await beingSent(service, post(service.key, await large(), header));
    const closed = service.close(600_000);
    await t.throwsAsync(dial(service.address.port));
    const [body] = bodies(await received(socket));
    t.true(await closed);
    t.true((body?.length ?? 0) > 5e6);
    t.is(body?.got, body?.length);
    t.is(await service.stores.ledger.openReservations(), 0);
    t.is((await service.balance()).credits, 0);
  });

test.serial('closing answers all pipelined requests of a connection before ending it', async (t) => {
  const service = await startService(t);
  const socket = await beingSent(service, post(service.key, await large()) + account(service.key).repeat(2));
  const closed = service.close(600_000);
  const all = bodies(await received(socket));
  t.true(await closed);
  t.is(all.length, 3);
  for (const { got, length } of all) t.is(got, length);
});

test.serial(
  'an answer that is not taken in time is cut off and reported, its charge settled by then',
  async (t) => {
    const service = await startService(t, { credits: 2, freePreviews: 0 });
    const socket = await beingSent(service, post(service.key, await large()));
    t.is(await service.stores.ledger.openReservations(), 1);
    t.false(await service.close(50));
    // At once, because the ledger is closed afterwards.
    t.is(await service.stores.ledger.openReservations(), 0);
    t.is((await service.balance()).credits, 1);
    const [body] = bodies(await received(socket));
    t.true((body?.got ?? 0) < (body?.length ?? 0));
  },
);

test.serial('closing waits for writes at the end of a request', async (t) => {
  let go = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const outcomes: DeliveryOutcome[] = [];
  const result = resultOf(Buffer.from('image'), {
    end: (outcome) => {
      outcomes.push(outcome);
      return gate;
    },
  });
  const service = await startService(t, { cutout: async () => result });
  const socket = await dial(service.address.port);
  const answer = received(socket);
  socket.write(post(service.key, await scene(), 'Connection: close\r\n'));
  await eventually(() => outcomes.length > 0);
  await answer;
  let isClosed = false;
  const closed = service.close(600_000).finally(() => {
    isClosed = true;
  });
  // All connections are closed by then.
  await new Promise((resolve) => service.server.once('close', resolve));
  await new Promise(setImmediate);
  t.false(isClosed);
  go();
  t.true(await closed);
  t.deepEqual(outcomes, ['delivered']);
});

test.serial('closing ends idle and unused connections without waiting for the grace period', async (t) => {
  const service = await startService(t);
  const used = await dial(service.address.port);
  const usedAll = received(used);
  used.write(account(service.key));
  await eventually(() => used.bytesRead > 0);
  const unused = await dial(service.address.port);
  const unusedAll = received(unused);
  t.true(await service.close(600_000));
  t.is(bodies(await usedAll).length, 1);
  t.is((await unusedAll).length, 0);
});

test.serial('closing answers a request whose head has partly arrived', async (t) => {
  const service = await startService(t);
  const connected = new Promise<Socket>((resolve) => service.server.once('connection', resolve));
  const socket = await dial(service.address.port);
  const all = received(socket);
  const text = account(service.key);
  socket.write(text.slice(0, 30));
  const inside = await connected;
  await eventually(() => inside.bytesRead === 30);
  const closed = service.close(600_000);
  socket.write(text.slice(30));
  t.regex((await all).toString('latin1'), /^HTTP\/1\.1 200 /);
  t.true(await closed);
});
