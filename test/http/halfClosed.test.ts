import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { scene } from '../fixtures/images.ts';
import { dial, rawRequest } from '../fixtures/rawHttp.ts';
import { eventually, type Service, startService } from '../fixtures/service.ts';

const request = async ({ key }: Service, version = '1.1') => {
  const text = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  const head = [
    `POST /v1.0/cutout HTTP/${version}`,
    'Host: x',
    `X-Api-Key: ${key}`,
    'Accept: application/json',
    'Content-Type: application/json',
    `Content-Length: ${text.length}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${text}`;
};

const account = ({ key }: Service) => `GET /v1.0/account HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`;

/** Sends, ends its side and reads to the end: the statuses, and the last body. */
async function exchange({ address }: Service, text: string, watch: (socket: Socket) => void = () => {}) {
  const { status, headers, body } = await rawRequest(address.port, (socket) => {
    watch(socket);
    socket.end(text);
  });
  const all = [status, ...[...body.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => Number(code))];
  return { all, headers, last: body.slice(body.lastIndexOf('\r\n\r\n') + 1).trim() };
}

function hold(service: Service): () => void {
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

test('a client that ends its side after its request gets its answer, however long that takes', async (t) => {
  const service = await startService(t);
  const release = hold(service);
  // Until the service has checked twice whether the client is there.
  const looks = (socket: Socket) =>
    new Promise<void>((resolve) => {
      let seen = '';
      socket.on('data', (chunk) => {
        seen += chunk.toString('latin1');
        if ([...seen.matchAll(/HTTP\/1\.1 102 /g)].length >= 2) resolve();
      });
    });
  let looked: Promise<void> | undefined;
  const answer = exchange(service, await request(service), (socket) => {
    looked = looks(socket);
  });
  await eventually(() => service.engine.running === 1);
  await looked;
  release();
  const { all, last } = await answer;
  t.is(all.at(-1), 200);
  t.deepEqual([...new Set(all.slice(0, -1))], [102]);
  t.truthy((JSON.parse(last) as { data: { result_b64: string } }).data.result_b64);
  t.is(service.engine.cancelled, 0);
});

test('all complete requests before a client ended its side are answered, in order', async (t) => {
  const service = await startService(t);
  const both = `${await request(service)}${account(service)}`;
  const { all, last } = await exchange(service, both);
  t.deepEqual(
    all.filter((status) => status !== 102),
    [200, 200],
  );
  t.true(last.includes('free_calls'));
});

test('a client that is gone is distinguished from one that waits', async (t) => {
  const service = await startService(t, { credits: 1 });
  hold(service);
  const socket = await dial(service.address.port);
  socket.write(await request(service));
  await eventually(() => service.engine.running === 1);
  socket.destroy();
  await eventually(() => service.engine.cancelled === 1);
  await eventually(() => service.lines().some(({ status }) => status === 499));
  t.is(await service.stores.ledger.openReservations(), 0);
});

test('HTTP/1.0 has no interim answers: a client that ends its side counts as gone', async (t) => {
  const service = await startService(t);
  hold(service);
  const socket = await dial(service.address.port);
  socket.write(await request(service, '1.0'));
  await eventually(() => service.engine.running === 1);
  socket.end();
  await eventually(() => service.engine.cancelled === 1);
  t.is(await service.stores.ledger.openReservations(), 0);
});

const refused = (t: ExecutionContext, { last }: { last: string }) => {
  const { errors } = JSON.parse(last) as { errors: { code: string; title: string; detail: string }[] };
  t.is(errors.length, 1);
  return errors[0];
};

for (const [what, spoil] of [
  ['in the middle of a header', (whole: string) => whole.slice(0, 60)],
  ['in the middle of the body', (whole: string) => whole.slice(0, -20)],
  [
    'in the middle of the body, with a wish for another protocol',
    (whole: string) => whole.replace('Host', 'Connection: Upgrade\r\nUpgrade: h2c\r\nHost').slice(0, -20),
  ],
  [
    'in the middle of a chunk',
    (whole: string) =>
      whole.replace(/Content-Length: \d+\r\n\r\n[\s\S]*/, 'Transfer-Encoding: chunked\r\n\r\nff\r\n{"image'),
  ],
] as const) {
  test(`a request that ends ${what} is 400 in the envelope`, async (t) => {
    const service = await startService(t);
    const answer = await exchange(service, spoil(await request(service)));
    t.deepEqual(answer.all, [400]);
    t.is(refused(t, answer)?.code, 'malformed_request');
  });
}

test('an invalid chunk is 400 while the connection stays open', async (t) => {
  const service = await startService(t);
  const text = (await request(service)).replace(
    /Content-Length: \d+\r\n\r\n[\s\S]*/,
    'Transfer-Encoding: chunked\r\n\r\nnone\r\n{"image',
  );
  const answer = await rawRequest(service.address.port, (socket) => void socket.write(text));
  t.is(answer.status, 400);
  t.true(answer.ended);
  t.is(refused(t, { last: answer.body })?.code, 'malformed_request');
});

test('invalid input waits until the requests before it are answered', async (t) => {
  const service = await startService(t);
  const release = hold(service);
  const answer = rawRequest(service.address.port, async (socket) => {
    socket.write(`${await request(service)}${account(service)}no request\r\n\r\n`);
  });
  await eventually(() => service.engine.running === 1);
  await new Promise((resolve) => setTimeout(resolve, 100));
  release();
  const { status, body, ended } = await answer;
  t.is(status, 200);
  const more = [...body.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => Number(code));
  t.deepEqual(more, [200, 400]);
  t.true(ended);
  t.is(service.engine.cancelled, 0);
});

test('CONNECT is refused, after the requests before it', async (t) => {
  const service = await startService(t);
  const connect = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n';
  const alone = await rawRequest(service.address.port, (socket) => void socket.write(connect));
  t.is(alone.status, 405);
  t.is(alone.headers['allow'], 'GET, HEAD, OPTIONS, POST');
  t.is(refused(t, { last: alone.body })?.code, 'method_not_allowed');
  t.deepEqual((await exchange(service, account(service) + connect)).all, [200, 405]);
});

const upload = ({ key }: Service, body: string, framing = 'Content-Length: 9000000') =>
  `POST /v1.0/cutout HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nContent-Type: multipart/form-data; boundary=b\r\n${framing}\r\n\r\n${body}`;
const half = '--b\r\nContent-Disposition: form-data; name="image_file"\r\n\r\nhalf an image';

/** The most bytes that any request has asked for. */
function largestReservation({ memory }: Service): () => number {
  let most = 0;
  const { reserveUpload } = memory;
  memory.reserveUpload = (account, bytes) => {
    most = Math.max(most, bytes);
    return reserveUpload.call(memory, account, bytes);
  };
  return () => most;
}

for (const [what, bytes, start, end] of [
  ['an invalid form', 9_000_000, (service) => upload(service, '--b\r\n\r\n'), 'no headers\r\n--b\r\n'],
  [
    'an invalid chunk',
    16_000,
    (service) => upload(service, `${half.length.toString(16)}\r\n${half}\r\n`, 'Transfer-Encoding: chunked'),
    'none\r\n',
  ],
] as readonly [string, number, (service: Service) => string, string][])
  test(`${what} holds no memory once its answer arrives, while the connection lingers`, async (t) => {
    const service = await startService(t);
    const largest = largestReservation(service);
    let left: number | undefined;
    const answer = await rawRequest(service.address.port, async (socket) => {
      socket.once('data', () => {
        left = service.memory.stats.held;
      });
      socket.write(start(service));
      await eventually(() => largest() > 0);
      socket.write(end);
    });
    t.is(answer.status, 400);
    t.deepEqual([largest(), left], [bytes, 0]);
    t.true(answer.ended);
  });

test('a body that ends in its middle holds no memory while requests before it are in progress', async (t) => {
  const service = await startService(t);
  const release = hold(service);
  const largest = largestReservation(service);
  const first = await request(service);
  let sent: Socket | undefined;
  const answer = exchange(service, first + upload(service, half), (socket) => {
    sent = socket;
  });
  await eventually(() => service.engine.running === 1);
  // What the first one holds is less.
  await eventually(() => largest() === 9_000_000 && service.memory.stats.held < 9_000_000);
  t.is(sent?.bytesRead, 0, 'no answer yet');
  release();
  const { all, last } = await answer;
  t.deepEqual(
    all.filter((status) => status !== 102),
    [200, 400],
  );
  t.true(
    last.includes('The request ended in the middle of its body.') || last.includes('not an HTTP request'),
  );
  const logged = () => service.lines().filter(({ status }) => status === 499);
  await eventually(() => logged().length === 1);
});
