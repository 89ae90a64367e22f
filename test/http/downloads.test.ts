import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { imageHost } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import {
  errorOf,
  eventually,
  form,
  type Service,
  type ServiceOptions,
  startService,
} from '../fixtures/service.ts';

const json = { 'Content-Type': 'application/json' };
const mebibyte = 2 ** 20;

/** By default no download times out during a test. */
const start = (t: ExecutionContext, options: ServiceOptions = {}) =>
  startService(t, { timeout: 120, ...options, download: { totalTimeoutMs: 60_000, ...options.download } });

interface Host {
  readonly url: string;
  /** Requests that reached it. */
  readonly asked: () => number;
  /** Answers in progress whose connection is open. */
  readonly open: Set<ServerResponse>;
  /** Ends those with these bytes. */
  readonly finish: (bytes: Buffer) => void;
}

/** Sends `first` at once and the rest on command. */
async function stallingHost(t: ExecutionContext, first: Buffer = Buffer.alloc(0)): Promise<Host> {
  const open = new Set<ServerResponse>();
  let asked = 0;
  const url = await imageHost(t, (_req, res) => {
    asked += 1;
    open.add(res);
    res.on('close', () => open.delete(res));
    res.flushHeaders();
    if (first.length > 0) res.write(first);
  });
  const finish = (bytes: Buffer) => {
    for (const res of open) res.end(bytes);
  };
  return { url, asked: () => asked, open, finish };
}

/** Answers every request with the same. */
async function host(t: ExecutionContext, answer: Buffer | number): Promise<Host> {
  let asked = 0;
  const url = await imageHost(t, (_req, res) => {
    asked += 1;
    if (typeof answer === 'number') res.writeHead(answer).end();
    else res.end(answer);
  });
  return { url, asked: () => asked, open: new Set(), finish: () => {} };
}

/** Nothing of a request is left: no slot, no memory. */
async function nothingLeft(t: ExecutionContext, service: Service): Promise<void> {
  await eventually(() => service.memory.stats.held === 0 && service.downloads.running === 0);
  t.is(service.memory.stats.working, 0);
}

async function otherAccount({ stores, url }: Service) {
  const { id } = await stores.accounts.create('Other');
  const { key } = await stores.accounts.createKey(id);
  return (body: FormData) =>
    fetch(`${url}/v1.0/cutout`, { method: 'POST', headers: { 'X-Api-Key': key }, body });
}

function holdEngine(service: Service): () => void {
  let release = () => {};
  service.engine.hold = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

test('the concurrency limit counts a call from before its download', async (t) => {
  const service = await start(t, { concurrency: 1 });
  const slow = await stallingHost(t);
  const first = service.post(form({ image_url: slow.url }));
  await eventually(() => slow.open.size === 1);
  for (const source of [{ image_url: slow.url }, { image_file: await scene() }]) {
    const second = await service.post(form(source));
    t.is(second.status, 429);
    t.is(second.headers.get('retry-after'), '1');
    t.regex((await errorOf(t, second)).detail, /are in progress/);
  }
  t.is(slow.asked(), 1);
  slow.finish(await scene());
  t.is((await first).status, 200);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  await nothingLeft(t, service);
});

test('concurrent downloads are limited per account and overall; one more is refused at once', async (t) => {
  const service = await start(t, { downloads: { perAccount: 2, total: 3 } });
  const other = await otherAccount(service);
  const slow = await stallingHost(t);
  const mine = [0, 1].map(() => service.post(form({ image_url: slow.url })));
  await eventually(() => slow.open.size === 2);
  const third = await service.post(form({ image_url: slow.url }));
  t.is(third.status, 429);
  t.is(third.headers.get('retry-after'), '2');
  t.truthy(third.headers.get('x-ratelimit-reset'));
  t.regex((await errorOf(t, third)).detail, /of this account are being downloaded/);

  const theirs = other(form({ image_url: slow.url }));
  await eventually(() => slow.open.size === 3);
  const fourth = await other(form({ image_url: slow.url }));
  t.is(fourth.status, 503);
  t.is(fourth.headers.get('retry-after'), '2');
  t.regex((await errorOf(t, fourth)).detail, /being downloaded/);
  t.is(slow.asked(), 3);
  // Uploads are not affected.
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  slow.finish(await scene());
  for (const answer of [...mine, theirs]) t.is((await answer).status, 200);
  await nothingLeft(t, service);
});

test('without the means to pay nothing is fetched', async (t) => {
  const service = await start(t, { credits: 0.75, freePreviews: 0 });
  const image = await host(t, await scene());
  const refused = await service.post(form({ image_url: image.url, size: 'full' }));
  t.is(refused.status, 402);
  t.is((await errorOf(t, refused)).detail, 'This request needs 1 credit, the balance is 0.75.');
  const background = { image_file: await scene(), bg_image_url: image.url, size: '4k' };
  t.is((await service.post(form(background))).status, 402);
  t.is(image.asked(), 0);
  for (const size of ['preview', 'auto', 'preview'])
    t.is((await service.post(form({ image_url: image.url, size }))).status, 200);
  for (const size of ['preview', 'auto']) {
    const empty = await service.post(form({ image_url: image.url, size }));
    t.is(empty.status, 402);
    t.is((await errorOf(t, empty)).detail, 'This request needs 0.25 credits, the balance is 0.');
  }
  t.is(image.asked(), 3);
  await nothingLeft(t, service);
});

test('a free preview pays for a download too', async (t) => {
  const service = await start(t, { credits: 0, freePreviews: 1 });
  const image = await host(t, await scene());
  t.is((await service.post(form({ image_url: image.url, size: 'full' }))).status, 402);
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
  t.is((await service.post(form({ image_url: image.url }))).status, 402);
  t.is(image.asked(), 1);
});

test('an address paid for with the last credit returns its cached result again', async (t) => {
  const service = await start(t, { credits: 0.25, freePreviews: 0, ttlSeconds: 600 });
  const image = await host(t, await scene());
  const first = await service.post(form({ image_url: image.url }));
  t.is(first.headers.get('x-credits-charged'), '0.25');
  const again = await service.post(form({ image_url: image.url }));
  t.is(again.status, 200);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is((await service.post(form({ image_url: `${image.url}/other` }))).status, 402);
  t.is(image.asked(), 2);
});

test('a rate window used up while the body arrives prevents the download', async (t) => {
  const service = await start(t, { rate: 1 });
  const image = await host(t, await scene());
  const body = JSON.stringify({ image_url: image.url });
  const socket = await dial(service.address.port);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
  });
  const head = [
    'POST /v1.0/cutout HTTP/1.1',
    'Host: x',
    `X-Api-Key: ${service.key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`);
  await eventually(() => service.memory.stats.held > 0);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  socket.write(body.slice(5));
  await eventually(() => answer.includes('\r\n\r\n'));
  socket.destroy();
  t.regex(answer, /^HTTP\/1\.1 429 /);
  t.is(image.asked(), 0);
});

test('arriving bytes are counted; a download without memory ends in 503, and others are served', async (t) => {
  const service = await start(t, {
    memory: { room: 200e6, largestWork: 100e6 },
  });
  const other = await otherAccount(service);
  const large = await stallingHost(t, Buffer.alloc(21e6));
  const leave = new AbortController();
  const ask = () =>
    fetch(`${service.url}/v1.0/cutout`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key, ...json },
      body: JSON.stringify({ image_url: large.url }),
      signal: leave.signal,
    });
  // One account holds three quarters of 100 MB: without an announced length each download takes 42 while it arrives.
  const first = ask();
  first.catch(() => {});
  await eventually(() => service.memory.stats.held >= 42e6);
  const answers = Array.from({ length: 9 }, ask);
  const refused: Response[] = [];
  for (const answer of answers) answer.then((response) => refused.push(response)).catch(() => {});
  await eventually(() => refused.length === 9 && large.open.size === 1);
  for (const response of refused) {
    t.is(response.status, 503);
    t.is(response.headers.get('retry-after'), '2');
    t.regex((await errorOf(t, response)).detail, /memory/);
  }
  t.true(service.memory.stats.held <= 75e6, `${service.memory.stats.held}`);
  t.is((await other(form({ image_file: await scene() }))).status, 200);
  leave.abort();
  await Promise.allSettled([first, ...answers]);
  await eventually(() => large.open.size === 0);
  await nothingLeft(t, service);
});

test('without memory for a connection no host is contacted', async (t) => {
  const service = await start(t, { memory: { room: 200e6, largestWork: 100e6 } });
  const image = await host(t, await scene());
  const taken = service.memory.reserveUpload('somebody else', 99.9e6);
  const refused = await service.post(form({ image_url: image.url }));
  t.is(refused.status, 503);
  t.is(image.asked(), 0);
  taken?.release();
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
  await nothingLeft(t, service);
});

test('a downloaded image is counted until its request is done with it', async (t) => {
  const service = await start(t, { memory: { room: 400e6, largestWork: 200e6 }, metrics: true });
  const value = async (name: string) =>
    Number(new RegExp(`^cutout_${name} (\\S+)$`, 'm').exec(await service.metrics.text())?.[1]);
  const release = holdEngine(service);
  const bytes = Buffer.concat([await scene(), Buffer.alloc(5e6)]);
  const behind = Buffer.concat([await scene(), Buffer.alloc(3e6)]);
  const [image, background] = [await host(t, bytes), await stallingHost(t)];
  const answer = service.post(
    form({ image_url: image.url, bg_image_url: background.url, channels: 'alpha' }),
  );
  await eventually(() => background.open.size === 1);
  t.is(await value('downloads_running'), 1);
  t.true(service.memory.stats.held >= bytes.length);
  background.finish(behind);
  await eventually(() => service.engine.running === 1);
  const { held } = service.memory.stats;
  t.true(held >= bytes.length + behind.length && held < bytes.length + behind.length + 1000, String(held));
  t.is(await value('downloads_running'), 0);
  t.is(await value('memory_held_bytes'), held);
  release();
  t.is((await answer).status, 200);
  await nothingLeft(t, service);
  t.is(await value('memory_held_bytes'), 0);
});

test('however a download ends, nothing stays counted', async (t) => {
  const service = await start(t, {
    memory: { room: 400e6, largestWork: 200e6 },
    ttlSeconds: 600,
  });
  const image = await host(t, await scene());
  const wanted: readonly [Host, number][] = [
    [image, 200],
    [image, 200],
    [await host(t, 404), 400],
    [await host(t, Buffer.from('<html></html>')), 400],
    [await host(t, Buffer.alloc(22 * mebibyte + 1)), 400],
  ];
  for (const [{ url }, status] of wanted) {
    t.is((await service.post(form({ image_url: url }))).status, status);
    await nothingLeft(t, service);
  }
  service.engine.failure = new Error('bug');
  t.is((await service.post(form({ image_url: `${image.url}/2`, size: 'full' }))).status, 500);
  await nothingLeft(t, service);
});

test('a stalled download is not counted any more after its time limit', async (t) => {
  const service = await start(t, {
    memory: { room: 400e6, largestWork: 200e6 },
    download: { totalTimeoutMs: 300 },
  });
  const stalled = await stallingHost(t, Buffer.alloc(mebibyte));
  const answer = await service.post(form({ image_url: stalled.url }));
  t.is((await errorOf(t, answer)).code, 'failed_image_download');
  await nothingLeft(t, service);
});

test('a download continues, counted once, when its first caller leaves a second one waiting', async (t) => {
  const service = await start(t, {
    memory: { room: 400e6, largestWork: 200e6 },
    concurrency: 1,
    ttlSeconds: 600,
  });
  const release = holdEngine(service);
  const slow = await stallingHost(t);
  const bytes = Buffer.concat([await scene(), Buffer.alloc(5e6)]);
  const leave = new AbortController();
  const post = (signal?: AbortSignal) =>
    fetch(`${service.url}/v1.0/cutout`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key, 'Idempotency-Key': 'shared' },
      body: form({ image_url: slow.url }),
      ...(signal && { signal }),
    });
  const first = post(leave.signal);
  await eventually(() => slow.open.size === 1);
  const second = post();
  await eventually(() => service.calls() === 2);
  leave.abort();
  await t.throwsAsync(first, { any: true });
  await eventually(() => service.lines().some(({ status }) => status === 499));
  // It continues for the second caller, and takes the only slot of its account.
  t.is(slow.open.size, 1);
  t.is(service.downloads.running, 1);
  t.is((await service.post(form({ image_file: await scene() }))).status, 429);
  slow.finish(bytes);
  await eventually(() => service.engine.running === 1);
  t.true(service.memory.stats.held >= bytes.length);
  release();
  t.is((await second).status, 200);
  t.is(slow.asked(), 1);
  await nothingLeft(t, service);
  t.is((await service.post(form({ image_file: await scene({ width: 99 }) }))).status, 200);
});

test('an account whose downloads fail waits for the rest of the minute', async (t) => {
  let now = 1e12;
  const service = await start(t, { fetchFailures: 4, now: () => now });
  const [missing, page] = [await host(t, 404), await host(t, Buffer.from('<html></html>'))];
  const [image, slow] = [await host(t, await scene()), await stallingHost(t)];
  const failed = [missing.url, page.url, 'http://inside.example/'];
  for (const image_url of failed) t.is((await service.post(form({ image_url }))).status, 400);
  // Successful downloads, and addresses refused without contacting a host, do not count.
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
  t.is((await service.post(form({ image_url: 'ftp://a.public.test/' }))).status, 400);
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
  const leave = new AbortController();
  const left = fetch(`${service.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_url: slow.url }),
    signal: leave.signal,
  });
  await eventually(() => slow.open.size === 1);
  leave.abort();
  await t.throwsAsync(left, { any: true });
  await nothingLeft(t, service);

  const refused = await service.post(form({ image_url: image.url }));
  t.is(refused.status, 429);
  t.is(refused.headers.get('retry-after'), '60');
  t.is(refused.headers.get('x-ratelimit-remaining'), '498');
  t.regex((await errorOf(t, refused)).detail, /Too many downloads of this account failed/);
  t.is(image.asked(), 2);
  const other = await otherAccount(service);
  t.is((await other(form({ image_url: image.url }))).status, 200);
  t.is((await service.post(form({ image_file: await scene() }))).status, 200);
  now += 60_000;
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
});

test('refusals by the service are not failures of the account', async (t) => {
  const service = await start(t, {
    fetchFailures: 1,
    downloads: { perAccount: 1, total: 0 },
    memory: { room: 200e6, largestWork: 100e6 },
  });
  const [slow, image] = [await stallingHost(t), await host(t, await scene())];
  const first = service.post(form({ image_url: slow.url }));
  await eventually(() => slow.open.size === 1);
  t.is((await service.post(form({ image_url: image.url }))).status, 429);
  slow.finish(await scene());
  t.is((await first).status, 200);
  const taken = service.memory.reserveUpload('somebody else', 99.9e6);
  t.is((await service.post(form({ image_url: image.url }))).status, 503);
  taken?.release();
  t.is((await service.post(form({ image_url: image.url }))).status, 200);
});

test('a service that fetches nothing reports that with the remedy; nothing is charged', async (t) => {
  const service = await start(t, { credits: 1, freePreviews: 0, download: { mode: 'off' } });
  const image = await host(t, await scene());
  const detail = 'This service does not download images. Upload the image instead.';
  const refused = await service.post(form({ image_url: image.url, size: 'full' }));
  t.is(refused.status, 400);
  t.like(await errorOf(t, refused), { code: 'invalid_image_url', detail });
  const background = await service.post(form({ image_file: await scene(), bg_image_url: image.url }));
  t.is(background.status, 400);
  t.like(await errorOf(t, background), { code: 'invalid_bg_image_url', detail });
  t.is(image.asked(), 0);
  t.is((await service.balance()).credits, 1);
});

test('listed hosts only: the list applies to backgrounds too', async (t) => {
  const image = await host(t, await scene());
  const { host: listed, port } = new URL(image.url.replace('images.public.test', '127.0.0.1'));
  const service = await start(t, { download: { mode: 'listed', allowHosts: [listed] } });
  t.is((await service.post(form({ image_url: `http://127.0.0.1:${port}/` }))).status, 200);
  const other = await service.post(form({ image_url: image.url }));
  t.like(await errorOf(t, other), {
    code: 'invalid_image_url',
    detail:
      'This service downloads from listed hosts only, and this host is not listed. Upload the image instead.',
  });
  const both = form({ image_url: `http://127.0.0.1:${port}/`, bg_image_url: image.url });
  t.is((await errorOf(t, await service.post(both))).code, 'invalid_bg_image_url');
  t.is(image.asked(), 1);
});

test('/improve: the same limits; nothing is fetched once the daily quota is used up', async (t) => {
  const service = await start(t, {
    improvePerDay: 1,
    fetchFailures: 2,
    downloads: { perAccount: 1, total: 0 },
    memory: { room: 200e6, largestWork: 100e6 },
  });
  const handIn = (image_url: string) =>
    fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: form({ image_url }),
    });
  const [slow, missing, image] = [await stallingHost(t), await host(t, 404), await host(t, await scene())];
  const first = handIn(slow.url);
  await eventually(() => slow.open.size === 1);
  const second = await handIn(slow.url);
  t.is(second.status, 429);
  t.is(second.headers.get('retry-after'), '2');
  t.is(second.headers.get('x-ratelimit-limit'), null);
  slow.finish(await scene());
  t.is((await first).status, 200);
  await nothingLeft(t, service);

  const usedUp = await handIn(image.url);
  t.is(usedUp.status, 429);
  t.regex((await errorOf(t, usedUp)).detail, /daily limit of submitted images is reached/);
  t.is(image.asked(), 0);
  t.is(missing.asked(), 0);
});

test('/improve: failed downloads count together with those of cutout', async (t) => {
  const service = await start(t, { fetchFailures: 2 });
  const missing = await host(t, 404);
  const handIn = () =>
    fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: form({ image_url: missing.url }),
    });
  t.is((await handIn()).status, 400);
  t.is((await service.post(form({ image_url: missing.url }))).status, 400);
  t.is((await handIn()).status, 429);
  t.is((await service.post(form({ image_url: missing.url }))).status, 429);
  t.is(missing.asked(), 2);
});

test('the log has the reason of a failed download, which the client does not get, and no address', async (t) => {
  const service = await start(t);
  const answer = await service.post(form({ image_url: 'http://10.1.2.3/inside.png' }));
  t.regex((await errorOf(t, answer)).detail, /^The host could not be reached/);
  await eventually(() => service.lines().some(({ download }) => download === 'port'));
  t.false(service.text().includes('10.1.2.3'));
});

test('a download stays counted when its client leaves while others wait for the work', async (t) => {
  const service = await start(t, { ttlSeconds: 600 });
  let go = () => {};
  service.engine.hold = new Promise((resolve) => {
    go = resolve;
  });
  const image = Buffer.concat([await scene(), Buffer.alloc(5e6)]);
  const { url } = await host(t, image);
  // The content is being made for somebody else, so the request that downloads it again only waits.
  const working = service.post(form({ image_file: image }));
  await eventually(() => service.engine.running === 1);
  const leaving = new AbortController();
  const headers = { 'X-Api-Key': service.key, 'Idempotency-Key': 'one-key' };
  const ask = (body: FormData, signal?: AbortSignal) =>
    fetch(`${service.url}/v1.0/cutout`, { method: 'POST', headers, body, ...(signal && { signal }) });
  const first = ask(form({ image_url: url }), leaving.signal);
  const left = t.throwsAsync(first);
  await eventually(() => service.memory.stats.held >= 2 * image.length && service.downloads.running === 0);
  const second = ask(form({ image_url: 'http://x.test/' }));
  await eventually(() => service.calls() === 3);
  leaving.abort();
  await left;
  // Longer than the server needs to notice.
  await new Promise((resolve) => setTimeout(resolve, 500));
  t.true(service.memory.stats.held >= 2 * image.length, `${service.memory.stats.held} bytes`);
  go();
  t.is((await working).status, 200);
  t.is((await second).status, 200);
  await nothingLeft(t, service);
});
