import { appendFileSync, cpSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { root } from '../../bench/lib/paths.ts';
import { GraphProtoSchema, ModelProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { type Config, loadConfig } from '../../src/config/readConfig.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { networkOutput } from '../../src/engine/networkOutput.ts';
import { ModelError } from '../../src/models/error.ts';
import { operatorsOf } from '../../src/models/precision.ts';
import { Health } from '../../src/ops/health.ts';
import { createLogger } from '../../src/ops/log.ts';
import { openEngine } from '../../src/server/openEngine.ts';
import { openServer } from '../../src/server/openServer.ts';
import { modelsFolder, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { sha256, tinyManifest } from '../fixtures/networks.ts';
import { FLOAT, ints, node, value } from '../fixtures/onnx.ts';
import { form } from '../fixtures/service.ts';
import type { TinyNetwork } from '../fixtures/tinyNetwork.ts';
import { wideNetwork, wideTable } from '../fixtures/wide.ts';

/** Of the middle third of `thirds` the first network says 0.5, the second one 1. */
const UNSURE = { gain: -2.5, bias: 0.59 };
const SURE = { gain: -10, bias: 8 };

/** White, gray, black. */
function thirds() {
  const [width, height] = [96, 96];
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let i = 0; i < width * height; i++) {
    data.fill(i % width < 32 ? 255 : i % width < 64 ? 128 : 0, i * 4, i * 4 + 3);
  }
  return { data, width, height };
}

/** Output of a network in the middle of each third, as bytes. */
async function alphas(engine: Engine, network = 'u2netp') {
  const { values, width, height } = await networkOutput(engine, network, thirds());
  const middle = Math.floor(height / 2) * width;
  return [1 / 6, 1 / 2, 5 / 6].map((x) => Math.round((values[middle + Math.floor(width * x)] ?? -1) * 255));
}

function configOf(t: ExecutionContext, env: Record<string, string>, second?: Partial<TinyNetwork>) {
  const data = temporaryFolder(t);
  const models = modelsFolder(path.join(data, 'models'), UNSURE);
  if (second) modelsFolder(models, second, 'silueta');
  return loadConfig({
    CUTOUT_DATA_DIR: data,
    CUTOUT_PORT: '0',
    CUTOUT_MODEL: 'u2netp',
    CUTOUT_SUBJECT_TYPES: 'off',
    ...env,
  });
}

async function open(t: ExecutionContext, { engine }: ReturnType<typeof configOf>) {
  const notices: string[] = [];
  const observer = { notice: (text: string) => void notices.push(text), progress: () => {} };
  const signal = new AbortController().signal;
  const opened = await openEngine(engine, { pull: false, observer, signal });
  t.teardown(() => opened.engine.close(0));
  return { ...opened, notices };
}

const named = { CUTOUT_SECOND_MODEL: 'silueta' };
const unloaded = { code: 'ENGINE_MODEL', message: /No network named/ };

test.serial('two networks are loaded, unloaded and loaded again together', async (t) => {
  const { engine, second, reload } = await open(t, configOf(t, named, SURE));
  t.is(second?.name, 'silueta');
  const alone = await alphas(engine);
  t.true(Math.abs((alone[1] ?? 0) - 128) < 12, String(alone));
  const other = await alphas(engine, 'silueta');
  t.true((other[1] ?? 0) > 240, String(other));
  // It looks where the first one is in doubt.
  const image = thirds();
  const { width, height } = image;
  const plan = { network: 'u2netp', second: 'silueta', width, height, hiddenColour: 'clear' } as const;
  const { secondLook } = await engine.matte(image, plan);
  t.is(secondLook, 'taken');
  t.is(image.data[(height / 2) * width * 4 + (width / 2) * 4 + 3], 255);

  await engine.unload();
  await t.throwsAsync(alphas(engine), unloaded);
  await t.throwsAsync(alphas(engine, 'silueta'), unloaded);
  await reload();
  t.deepEqual(await alphas(engine, 'silueta'), other);
  t.deepEqual(await alphas(engine), alone);
});

test.serial(
  'networks without the detector that a start had are not loaded again until it is back',
  async (t) => {
    const config = configOf(t, { CUTOUT_SUBJECT_TYPES: 'on' });
    const installed = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
    const detector = path.join(config.engine.modelsDir, 'centernet');
    cpSync(path.join(installed, 'centernet'), detector, { recursive: true });
    const { engine, reload, subjectTypes } = await open(t, config);
    t.true(subjectTypes);
    await engine.unload();
    renameSync(detector, `${detector}.away`);
    await t.throwsAsync(reload(), { instanceOf: ModelError, message: /centernet/ });
    renameSync(`${detector}.away`, detector);
    await t.notThrowsAsync(reload());
  },
);

test.serial('off opens no second network', async (t) => {
  const { engine, second } = await open(t, configOf(t, { CUTOUT_SECOND_MODEL: 'off' }, SURE));
  t.is(second, undefined);
  await t.throwsAsync(alphas(engine, 'silueta'), unloaded);
});

test.serial(
  'a second network that was named and is missing is an error that tells how to get it',
  async (t) => {
    await t.throwsAsync(open(t, configOf(t, named)), {
      instanceOf: ModelError,
      message: /silueta is not in .*cutout models pull silueta/,
    });
  },
);

for (const [what, tiny, why, damaged] of [
  ['is missing', undefined, 'u2net is not in ', false],
  ['cannot be opened', { secondInput: true }, 'has 2 inputs', false],
  ['is damaged', {}, 'is damaged', true],
] as const)
  test.serial(`where that of auto ${what}, the first one runs alone, with a notice`, async (t) => {
    const data = temporaryFolder(t);
    const models = modelsFolder(path.join(data, 'models'), {}, 'isnet');
    if (tiny) modelsFolder(models, tiny, 'u2net');
    if (damaged) appendFileSync(path.join(models, 'u2net', 'prepared.onnx'), 'x');
    const env = { CUTOUT_MODEL: 'isnet', CUTOUT_SECOND_MODEL: 'auto', CUTOUT_PRECISION: 'fp32' };
    const { second, notices, curve } = await open(t, configOf(t, { ...env, CUTOUT_DATA_DIR: data }));
    t.is(second, undefined);
    t.true(curve !== undefined);
    t.is(notices.length, 1);
    t.regex(notices[0] ?? '', /^isnet runs alone: .* Set CUTOUT_SECOND_MODEL=off/);
    t.true(notices[0]?.includes(why), notices[0]);
  });

/** Adds a network named tiny to the models folder of a configuration, and returns what is in its folder. */
function addTiny({ engine: { modelsDir } }: Config, file: Uint8Array, table?: object) {
  const folder = path.join(modelsDir, 'tiny');
  mkdirSync(folder);
  const source = { kind: 'file', path: 'source.onnx' } as const;
  const manifest = { ...tinyManifest(source, file), features: undefined, int8: table && 'int8.json' };
  writeFileSync(path.join(folder, 'model.json'), JSON.stringify(manifest));
  writeFileSync(path.join(folder, 'source.onnx'), file);
  if (table) writeFileSync(path.join(folder, 'int8.json'), JSON.stringify(table));
  return () => readdirSync(folder).sort();
}

test.serial('the fastest form is measured once, and only its file is kept', async (t) => {
  const config = configOf(t, { CUTOUT_MODEL: 'tiny' });
  const file = wideNetwork();
  const files = addTiny(config, file, wideTable(sha256(file)));
  const opened = await open(t, config);
  t.regex(opened.precision.because, /^measured: \d+ ms of processor time/);
  t.is(opened.notices.length, 1);
  t.regex(opened.notices[0] ?? '', /^tiny is computed in int8 by .* \(measured: \d+ ms/);
  const prepared = files().filter((name) => /^prepared.*onnx$/.test(name));
  t.deepEqual(prepared, [path.basename(opened.network.path)]);
  t.true(files().includes('choice.json') && files().includes('measured.json'));
  t.is((await alphas(opened.engine, 'tiny')).length, 3);
  await opened.engine.close(0);

  const again = await open(t, config);
  t.deepEqual(again.precision, opened.precision);
  t.deepEqual(again.notices, []);
});

test.serial('a form that a network does not have is left out, and the start goes on', async (t) => {
  if (operatorsOf('bf16', loadAddon().versions().operators).length === 0) {
    sayLeftOut(t, 'this processor has no dot products of bf16');
    return;
  }
  const config = configOf(t, { CUTOUT_MODEL: 'tiny' });
  // It has nothing that an operator of Cutout computes.
  const graph = create(GraphProtoSchema, {
    name: 'mean',
    input: [value('image', FLOAT, [1, 3, 32, 32])],
    output: [value('alpha', FLOAT, [1, 1, 32, 32])],
    node: [node('ReduceMean', ['image'], ['alpha'], [ints('axes', [1])])],
  });
  const opsetImport = [{ domain: '', version: 17n }];
  const files = addTiny(
    config,
    toBinary(ModelProtoSchema, create(ModelProtoSchema, { irVersion: 8n, opsetImport, graph })),
  );
  const { precision, notices } = await open(t, config);
  t.is(precision.precision, 'fp32');
  t.is(notices.length, 1);
  t.regex(notices[0] ?? '', /^tiny is computed in fp32 \(measured: \d+ ms of processor time\)\.$/);
  t.false(files().includes('prepared.bf16.onnx'));
});

test.serial('the memory of a run of the second network is counted for every further worker', async (t) => {
  const keptBy = async (config: ReturnType<typeof configOf>) => {
    const { engine } = await open(t, config);
    const { keptBytes } = engine.stats();
    await engine.close(0);
    return keptBytes;
  };
  const alone = await keptBy(configOf(t, {}));
  // Maps of 32 channels at 320 x 320 are 13 MB each.
  const both = await keptBy(configOf(t, named, { ...SURE, convolutions: 4 }));
  t.true(both > alone + 13e6, `${alone} ${both}`);
});

test.serial('an engine that is closed again leaves what others keep for their next runs', async (t) => {
  const closed = await open(t, configOf(t, {}));
  await closed.engine.close(0);
  const { engine } = await open(t, configOf(t, named, { ...SURE, convolutions: 4 }));
  const kept = engine.stats().keptBytes;
  t.true(kept > 0);
  await closed.engine.close(0);
  t.is(engine.stats().keptBytes, kept);
});

/** A server without a log, closed at the end of the test. */
async function openSilently(t: ExecutionContext, config: Config) {
  const server = await openServer(config, {
    log: { logger: createLogger('silent', { write: () => {} }), dropped: () => 0, flush: async () => {} },
    health: new Health(),
    pull: false,
    observer: { notice: () => {}, progress: () => {} },
    signal: new AbortController().signal,
  });
  t.teardown(() => server.close(0));
  return { server, url: `http://127.0.0.1:${server.http.address.port}` };
}

test.serial('a start that takes long says in /health/ready and in the metrics what it opens', async (t) => {
  // Batches on the CPU take the steps that TensorRT takes minutes for.
  const slow = { ...UNSURE, convolutions: 12, batch: true };
  const { engine, ...rest } = configOf(
    t,
    { CUTOUT_BATCH_MAX: '4', CUTOUT_METRICS_TOKEN: 'metrics-of-this-test' },
    slow,
  );
  const config = { ...rest, engine: { ...engine, model: 'silueta' } };
  const { server, url } = await openSilently(t, config);
  const get = async (path: string) => {
    const answer = await fetch(url + path, { headers: { Authorization: 'Bearer metrics-of-this-test' } });
    return `${answer.status} ${await answer.text()}`;
  };
  const seen = new Map<string, string>();
  const metrics = new Set<string>();
  let ready = false;
  const opened = server.ready().then(() => {
    ready = true;
  });
  while (!ready) {
    const said = await get('/health/ready');
    const [, step] = /opening silueta for (?:single images|batches of \d), step (\d)/.exec(said) ?? [];
    if (step) seen.set(step, said);
    for (const [line] of (await get('/metrics')).matchAll(/^cutout_network_opening_steps?\{.*$/gm))
      metrics.add(line);
    await sleep(5);
  }
  await opened;
  t.deepEqual([...seen.keys()], ['1', '2', '3']);
  t.regex(
    seen.get('2') ?? '',
    /^503 .*The service is starting: opening silueta for batches of 2, step 2 of 3, \d+ s so far\./,
  );
  const steps = [1, 2, 3].map((step) => `cutout_network_opening_step{network="silueta"} ${step}`);
  t.deepEqual([...metrics].sort(), [...steps, 'cutout_network_opening_steps{network="silueta"} 3'].sort());
  t.regex(await get('/health/ready'), /^200 /);
  t.notRegex(await get('/metrics'), /^cutout_network_opening_\w+\{/m);
});

test.serial('a server is ready when both networks are loaded', async (t) => {
  // The profile whose previews run both.
  const config = configOf(t, { ...named, CUTOUT_PROFILE: 'best' }, { ...SURE, convolutions: 60 });
  const { server, url } = await openSilently(t, config);
  const { key } = await server.stores.accounts.createKey((await server.stores.accounts.create('Test')).id);
  const ready = async () => (await fetch(`${url}/health/ready`)).status;
  t.is(await ready(), 503);
  const { second } = await server.ready();
  t.is(second?.name, 'silueta');
  t.is(await ready(), 200);
  // A plan with a network that is not loaded fails.
  const answer = await fetch(`${url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: await scene({ width: 64, height: 48 }), size: 'preview' }),
  });
  t.is(answer.status, 200, await answer.text());
});
