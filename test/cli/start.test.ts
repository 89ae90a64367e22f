import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { cli, modelsFolder, type Serving, startCli, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { eventually, form } from '../fixtures/service.ts';

async function cutOut(server: Serving, key: string): Promise<Buffer> {
  const image = await scene({ width: 300, height: 200 });
  const answer = await fetch(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: image, size: 'full' }),
  });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return sharp(Buffer.from(await answer.arrayBuffer()))
    .raw()
    .toBuffer();
}

function setUp(t: ExecutionContext) {
  const data = temporaryFolder(t);
  const models = modelsFolder(path.join(data, 'models'), { convolutions: 2 });
  const [network = ''] = readdirSync(models);
  return {
    env: { CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: models },
    key: () => readFileSync(path.join(data, 'local-key'), 'utf8').trim(),
    prepared: path.join(models, network, 'prepared.onnx'),
    copy: path.join(models, network, 'prepared.optimised', 'network.onnx'),
  };
}

async function oneStart(t: ExecutionContext, { env, key }: ReturnType<typeof setUp>): Promise<Buffer> {
  const server = await startServing(t, env);
  const result = await cutOut(server, key());
  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 0);
  return result;
}

const flip = (file: string) => {
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(file, bytes);
};

test.serial('a start saves a copy that the next one opens, with the same result', async (t) => {
  const place = setUp(t);
  const first = await oneStart(t, place);
  const made = statSync(place.copy);
  t.deepEqual(
    readdirSync(path.dirname(place.prepared)).filter((name) => name.startsWith('.')),
    [],
  );
  t.deepEqual(await oneStart(t, place), first);
  t.is(statSync(place.copy).ino, made.ino, 'it was made again');
});

test.serial('a damaged copy is not used and is saved again', async (t) => {
  const place = setUp(t);
  const first = await oneStart(t, place);
  const sound = readFileSync(place.copy);
  flip(place.copy);
  t.deepEqual(await oneStart(t, place), first);
  t.deepEqual(readFileSync(place.copy), sound);
});

test.serial('a damaged prepared network is an error, with or without a copy', async (t) => {
  const place = setUp(t);
  await oneStart(t, place);
  t.true(existsSync(place.copy));
  flip(place.prepared);
  const { code, stderr } = await cli(t, ['serve', '--no-pull'], { CUTOUT_PORT: '0', ...place.env });
  t.is(code, 1);
  t.regex(stderr, /^cutout: .*damaged.*\n$/);
});

test.serial(
  'a signal while the network is opened ends the start cleanly, without incomplete files',
  async (t) => {
    const data = temporaryFolder(t);
    const models = modelsFolder(path.join(data, 'models'), { convolutions: 100 });
    const [network = ''] = readdirSync(models);
    const folder = path.join(models, network);
    const env = { CUTOUT_PORT: '0', CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: models };
    const started = startCli(t, ['serve', '--no-pull'], env);
    // The draft exists while the engine loads and warms up the network.
    await eventually(() => readdirSync(folder).some((name) => name.startsWith('.pull-')));
    started.child.kill('SIGTERM');
    const { code, stderr } = await started.ended;
    t.is(code, 0, stderr);
    t.is(stderr, '');
    t.deepEqual(readdirSync(folder).sort(), ['prepared.json', 'prepared.onnx']);
  },
);
