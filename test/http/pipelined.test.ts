import type { IncomingMessage, ServerResponse } from 'node:http';
import test from 'ava';
import { scene } from '../fixtures/pictures.ts';
import { dial, rawRequest } from '../fixtures/raw_http.ts';
import { eventually, startService } from '../fixtures/service.ts';

const post = (key: string, text: string) =>
  `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;

test('requests that were sent ahead on a connection that ends leave no reservation open', async (t) => {
  const service = await startService(t);
  let go = () => {};
  service.engine.hold = new Promise((resolve) => {
    go = resolve;
  });
  const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  const socket = await dial(service.address.port);
  socket.write(post(service.key, text).repeat(3));
  await eventually(() => service.engine.running === 3);
  t.is(await service.books.ledger.openReservations(), 3);
  socket.destroy();
  // Nobody waits for any of them.
  await eventually(() => service.engine.cancelled === 3);
  go();
  await eventually(async () => (await service.books.ledger.openReservations()) === 0);
  t.is((await service.balance()).credits, 100);
  t.is((await service.balance()).freeCalls, 50);
});

for (const keepSeconds of [0, 600])
  test(`an answer whose turn never came is not charged, results kept for ${keepSeconds} s`, async (t) => {
    const service = await startService(t, { freePreviews: 0, credits: 10, keepSeconds });
    const answers: ServerResponse[] = [];
    service.server.on('request', (_: IncomingMessage, res: ServerResponse) => void answers.push(res));
    let go = () => {};
    service.engine.hold = new Promise((resolve) => {
      go = resolve;
    });
    const text = async (width: number) =>
      JSON.stringify({ image_file_b64: (await scene({ width })).toString('base64'), size: 'full' });
    const socket = await dial(service.address.port);
    let got = 0;
    socket.on('data', ({ length }) => {
      got += length;
    });
    socket.write(post(service.key, await text(300)));
    await eventually(() => service.engine.running === 1);
    service.engine.hold = undefined;
    socket.write(post(service.key, await text(310)));
    // The second one stands behind the first, which is at work.
    await eventually(() => answers[1]?.headersSent === true);
    t.is((await service.balance()).credits, 8);
    socket.destroy();
    await eventually(() => service.engine.cancelled === 1);
    go();
    await eventually(async () => (await service.books.ledger.openReservations()) === 0);
    t.is(got, 0);
    t.is((await service.balance()).credits, 10);
    t.deepEqual(await service.books.ledger.verify(), []);
  });

test('answers to requests that were sent ahead come in their order', async (t) => {
  const service = await startService(t);
  const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  const { body, status } = await rawRequest(service.address.port, (socket) => {
    const last = `GET /v1.0/account HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nConnection: close\r\n\r\n`;
    socket.write(post(service.key, text) + last);
  });
  t.is(status, 200);
  t.regex(body, /"free_calls":\d+,"sizes":"all"\}\}\}\}$/);
});

test('without Host a request is refused in the words of the service; other expectations are ignored', async (t) => {
  const service = await startService(t);
  const bare = await rawRequest(service.address.port, (socket) => {
    socket.write('GET /v1.0/account HTTP/1.1\r\nConnection: close\r\n\r\n');
  });
  t.is(bare.status, 400);
  t.is(JSON.parse(bare.body).errors[0].detail, 'The Host header is missing.');
  const expecting = await rawRequest(service.address.port, (socket) => {
    socket.write(
      `GET /v1.0/account HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${service.key}\r\nExpect: cake\r\nConnection: close\r\n\r\n`,
    );
  });
  t.is(expecting.status, 200);
  const old = await rawRequest(service.address.port, (socket) => {
    socket.write(`GET /v1.0/account HTTP/1.0\r\nX-Api-Key: ${service.key}\r\n\r\n`);
  });
  t.is(old.status, 200);
});
