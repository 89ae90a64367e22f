import { copyFileSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import {
  type CliEnvironment,
  cli,
  root,
  type Serving,
  startServing,
  temporaryFolder,
} from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { eventually, form } from '../fixtures/service.ts';

/**
 * The whole server with CUTOUT_DEVICE=cuda on a machine without a GPU: libcuda.so.1 is fake_driver.cc, which shows two GPUs, and
 * libcutout_cuda.so is host_kernels.cc, which computes on the host.
 */

const inRoot = (...names: string[]) => path.join(root, ...names);
const metricsToken = 'the-token-of-this-test-only';
const release = path.join('build', 'native', 'Release');

/** A network that is a program for Cutout's kernels. It is sure of most pixels, so that only the edge comes back from a GPU. */
function network(): Uint8Array {
  const net = new NetworkBuilder(5);
  const map = net.conv(net.conv('image', { channels: 16, stride: 2 }), { channels: 16 });
  const logit = net.resize(net.conv(map, { channels: 1, relu: false, gain: 8 }), 2);
  return net.build(net.apply('Sigmoid', logit), 32, 32).file;
}

interface Place {
  readonly program: string;
  readonly env: CliEnvironment;
  readonly onGpus: CliEnvironment;
}

/** An installation whose kernels are the host's, with the network `small` added by `cutout models add`. */
async function install(t: ExecutionContext): Promise<Place> {
  const folder = temporaryFolder(t);
  const app = path.join(folder, 'app');
  for (const part of ['package.json', 'bin', 'scripts', 'models', 'build/ts/src', 'build/web'])
    cpSync(inRoot(part), path.join(app, part), { recursive: true });
  symlinkSync(inRoot('node_modules'), path.join(app, 'node_modules'));
  mkdirSync(path.join(app, release), { recursive: true });
  copyFileSync(inRoot(release, 'cutout.node'), path.join(app, release, 'cutout.node'));
  copyFileSync(inRoot(release, 'libcutout_host_kernels.so'), path.join(app, release, 'libcutout_cuda.so'));
  const driver = path.join(folder, 'driver');
  mkdirSync(driver);
  symlinkSync(inRoot(release, 'libcutout_fake_driver.so'), path.join(driver, 'libcuda.so.1'));

  const program = path.join(app, 'bin', 'cutout.js');
  const data = path.join(folder, 'data');
  const env = {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: path.join(data, 'models'),
    CUTOUT_MODEL: 'small',
    CUTOUT_SUBJECT_TYPES: 'off',
    CUTOUT_METRICS_TOKEN: metricsToken,
    // What is repeated is computed again.
    CUTOUT_KEEP_SECONDS: '0',
  };
  const file = path.join(folder, 'small.onnx');
  writeFileSync(file, network());
  const added = await cli(t, ['models', 'add', file, '--name', 'small', '--licence', 'MIT', '--yes'], env);
  t.is(added.code, 0, added.stderr);
  const onGpus = {
    ...env,
    LD_LIBRARY_PATH: driver,
    CUTOUT_TEST_CUDA: 'count=2',
    CUTOUT_DEVICE: 'cuda',
    CUTOUT_DEVICE_ID: 'all',
    CUTOUT_BATCH_MAX: '2',
  };
  return { program, env, onGpus };
}

/** The pixels of an answer for an image, in RGBA. */
async function cutOut(server: Serving, { env }: Place, image: Buffer, options: Record<string, string> = {}) {
  const key = readFileSync(path.join(env['CUTOUT_DATA_DIR'] ?? '', 'local-key'), 'utf8').trim();
  const answer = await fetch(`${server.url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: image, size: 'full', ...options }),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) throw new Error(`${JSON.stringify(options)}: ${answer.status}: ${bytes}`);
  return sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
}

/** Whether two images agree: by less than half of 255 levels on average, and by at most 8 for 99.9 % of the values. */
function agree(a: Buffer, b: Buffer): boolean {
  const differences = a.map((value, at) => Math.abs(value - (b[at] ?? 0))).sort();
  const mean = differences.reduce((sum, each) => sum + each, 0) / a.length;
  return a.length === b.length && mean < 0.5 && (differences[Math.floor(0.999 * a.length)] ?? 255) <= 8;
}

/** Of the runs of 32 pixels of a row those that are neither opaque nor transparent. */
function mixedRuns(image: Awaited<ReturnType<typeof cutOut>> | undefined): number {
  if (!image) return 1;
  const { data, info } = image;
  const across = Math.ceil(info.width / 32);
  const kinds = Array.from({ length: across * info.height }, () => new Set<number>());
  for (let at = 0; at < info.width * info.height; at++) {
    const run = Math.floor(at / info.width) * across + Math.floor((at % info.width) / 32);
    kinds[run]?.add(data[4 * at + 3] ?? 0);
  }
  const sure = kinds.filter((each) => each.size === 1 && (each.has(0) || each.has(255)));
  return 1 - sure.length / kinds.length;
}

async function metric(server: Serving, name: string): Promise<number> {
  const text = await (
    await fetch(`${server.url}/metrics`, { headers: { Authorization: `Bearer ${metricsToken}` } })
  ).text();
  const values = text.split('\n').filter((line) => line.startsWith(name));
  if (values.length === 0) throw new Error(`${name} is not there: ${text}`);
  return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const requests: readonly Record<string, string>[] = [
  {},
  { size: 'preview' },
  { crop: 'true', crop_margin: '10px' },
  { bg_color: 'ff8800', format: 'jpg' },
  { add_shadow: 'true', format: 'webp' },
  { roi: '0px 0px 400px 400px' },
  { channels: 'alpha' },
];

test.serial('what two GPUs answer is what the CPU answers', async (t) => {
  const place = await install(t);
  const image = await scene({ width: 700, height: 400 });
  const cpu = await startServing(t, { ...place.env, CUTOUT_PRECISION: 'fp32' });
  const expected = [];
  for (const options of requests) expected.push(await cutOut(cpu, place, image, options));
  cpu.child.kill('SIGTERM');
  await cpu.ended;

  const server = await startServing(t, place.onGpus, [], place.program);
  t.regex(server.stderr(), /small runs by Cutout's own kernels on GPU 0 \(Stand-in\), GPU 1 \(Stand-in\)/);
  t.deepEqual(await (await fetch(`${server.url}/health/ready`)).json(), {
    status: 'ready',
    devices: { ready: 2, lost: 0 },
  });
  t.regex(server.stderr(), /^Network +small on cuda in fp16 /m);
  t.true(mixedRuns(expected[0]) < 0.3, 'what fits into a third of the image');
  const results = await Promise.all(requests.map((options) => cutOut(server, place, image, options)));
  for (const [at, { data, info }] of results.entries()) {
    const said = JSON.stringify(requests[at]);
    t.like(info, { width: expected[at]?.info.width, height: expected[at]?.info.height }, said);
    t.true(agree(data, expected[at]?.data ?? Buffer.alloc(0)), said);
  }
  for (const device of [0, 1]) {
    const batches = `cutout_engine_batches_total{device="${device}"`;
    t.true((await metric(server, batches)) > 0, `GPU ${device} computed some`);
  }
  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 0);
});

test.serial('a GPU that is lost: its images are made by the other one', async (t) => {
  const place = await install(t);
  const lost = { ...place.onGpus, CUTOUT_TEST_LOSE_DEVICE: '1000' };
  const server = await startServing(t, lost, [], place.program);
  t.is(await metric(server, 'cutout_device_up{device="1"}'), 1);
  const made: { readonly image: Buffer; readonly data: Buffer }[] = [];
  await eventually(async () => {
    const widths = [1, 2, 3, 4].map((at) => 300 + made.length + at);
    const images = await Promise.all(widths.map((width) => scene({ width, height: 200 })));
    const results = await Promise.all(images.map((image) => cutOut(server, place, image)));
    made.push(...images.map((image, at) => ({ image, data: results[at]?.data ?? Buffer.alloc(0) })));
    return (await metric(server, 'cutout_device_up{device="1"}')) === 0;
  });
  const ready = await fetch(`${server.url}/health/ready`);
  t.is(ready.status, 200);
  t.deepEqual(await ready.json(), { status: 'ready', devices: { ready: 1, lost: 1 } });
  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 0);

  const cpu = await startServing(t, { ...place.env, CUTOUT_PRECISION: 'fp32' });
  for (const { image, data } of made) t.true(agree(data, (await cutOut(cpu, place, image)).data));
});

test.serial('auto measures cuda against the CPU, and the doctor says what computes', async (t) => {
  const place = await install(t);
  const run = (env: CliEnvironment) =>
    cli(t, ['doctor', '--measure'], { ...place.onGpus, ...env }, undefined, undefined, [], place.program);
  const auto = await run({ CUTOUT_DEVICE: 'auto', CUTOUT_DEVICE_ID: '0', CUTOUT_PRECISION: 'auto' });
  t.regex(
    `${auto.stdout}`,
    /auto: measured with small: cpu [\d.e+-]+, cuda [\d.e+-]+(, webgpu [\d.e+-]+)? images\/s/,
  );
  const named = await run({});
  t.is(named.code, 0, named.stderr);
  t.regex(`${named.stdout}`, /^Precision +fp16 \(the device cuda\)$/m);
  t.regex(`${named.stdout}`, /^\* +fp16 +Cutout's, cuda /m);
});
