import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { modelsFolder, root, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { type ErrorBody, form } from '../fixtures/service.ts';

interface Kind {
  readonly status: number;
  readonly code?: string;
  readonly send: (server: Serving, key: string) => Promise<Response>;
}

const post = (server: Serving, key: string, body: FormData | string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/v1.0/removebg`, { method: 'POST', headers: { 'X-Api-Key': key, ...headers }, body });

async function kinds(): Promise<Kind[]> {
  const jpeg = await scene({ width: 500, height: 333 });
  const png = await scene({ width: 333, height: 500, format: 'png' });
  const webp = await scene({ width: 1200, height: 900, format: 'webp' });
  const json = { 'Content-Type': 'application/json' };
  const ok = (fields: Record<string, string | Buffer>, headers = {}): Kind => ({
    status: 200,
    send: (server, key) => post(server, key, form(fields), headers),
  });
  const bad = (status: number, code: string, send: Kind['send']): Kind => ({ status, code, send });
  return [
    ok({ image_file: jpeg }),
    ok({ image_file: png, size: 'full', format: 'webp' }),
    ok({ image_file: webp, size: 'auto', format: 'zip' }),
    ok({ image_file: jpeg, channels: 'alpha' }, { Accept: 'application/json' }),
    {
      status: 200,
      send: (server, key) =>
        post(server, key, JSON.stringify({ image_file_b64: png.toString('base64') }), json),
    },
    bad(400, 'invalid_file_type', (server, key) =>
      post(server, key, form({ image_file: Buffer.from('hello') })),
    ),
    bad(400, 'failed_to_read_image', (server, key) =>
      post(server, key, form({ image_file: jpeg.subarray(0, 2500) })),
    ),
    bad(400, 'missing_source', (server, key) => post(server, key, form({ size: 'auto' }))),
    bad(403, 'auth_failed', (server) => post(server, 'wrong', form({ image_file: webp }))),
    bad(400, 'malformed_request', (server, key) => post(server, key, '{"', json)),
  ];
}

const residentMegabytes = ({ child }: Serving) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;

async function round(t: ExecutionContext, server: Serving, key: string, count: number): Promise<void> {
  const all = await kinds();
  const requests = Array.from({ length: count }, async (_, i) => {
    const kind = all[i % all.length];
    if (!kind) return;
    const answer = await kind.send(server, key);
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== kind.status) return t.fail(`${i % all.length}: ${answer.status} ${bytes}`);
    if (kind.code) t.is((JSON.parse(bytes.toString()) as ErrorBody).errors[0]?.code, kind.code);
    else if (answer.headers.get('content-type')?.startsWith('image/')) await sharp(bytes).stats();
  });
  await Promise.all(requests);
}

const serverEnv = (data: string, models: string) => ({
  CUTOUT_DATA_DIR: data,
  CUTOUT_MODELS_DIR: models,
  CUTOUT_QUEUE_SECONDS: '0',
  CUTOUT_TIMEOUT: '600',
  // Every request is processed: no cached results, no limits of an account.
  CUTOUT_KEEP_SECONDS: '0',
  CUTOUT_RATE_LIMIT: '0',
  // One request in eight has a wrong key, all from one address.
  CUTOUT_FAILED_ATTEMPTS: '0',
  CUTOUT_ACCOUNT_CONCURRENCY: '0',
  MALLOC_ARENA_MAX: '2',
});
const keyOf = (data: string) => readFileSync(path.join(data, 'local-key'), 'utf8').trim();

test.serial('200 mixed concurrent requests are answered correctly, with stable memory', async (t) => {
  t.timeout(300_000);
  const data = temporaryFolder(t);
  const server = await startServing(t, serverEnv(data, modelsFolder(path.join(data, 'models'))));
  const resident: number[] = [];
  for (let i = 0; i < 8; i++) {
    await round(t, server, keyOf(data), 200);
    resident.push(residentMegabytes(server));
  }
  t.log(`resident after each round: ${resident.map((mb) => mb.toFixed(0)).join(', ')} MB`);
  // Minima of three: the garbage in V8's heap varies by tens of megabytes. Two rounds fill the pools.
  const filled = Math.min(...resident.slice(2, 5));
  t.true(Math.min(...resident.slice(-3)) < filled * 1.15 + 10, 'no growth after the pools are filled');
});

const models = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
const present = existsSync(path.join(models, 'isnet', 'source.onnx'));

test.serial('mixed concurrent requests through the default network', async (t) => {
  if (!present) {
    sayLeftOut(t, `the network isnet is not in ${models}`);
    return;
  }
  t.timeout(600_000);
  const data = temporaryFolder(t);
  const server = await startServing(t, { ...serverEnv(data, models), CUTOUT_MODEL: 'isnet' });
  await round(t, server, keyOf(data), 20);
  const before = residentMegabytes(server);
  await round(t, server, keyOf(data), 20);
  const after = residentMegabytes(server);
  t.log(`resident: ${before.toFixed(0)}, then ${after.toFixed(0)} MB`);
  t.true(after < before * 1.15 + 10);
});
