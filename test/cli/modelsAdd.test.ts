import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/freePort.ts';
import { type AddOptions, addNetwork } from '../../src/cli/modelsAdd.ts';
import { listNetworks } from '../../src/cli/modelsList.ts';
import { type RunOptions, run } from '../../src/cli/run/run.ts';
import { ModelProtoSchema, StringStringEntryProtoSchema } from '../../src/compiler/onnx/onnx_pb.ts';
import { type Config, loadConfig, withModel } from '../../src/config/readConfig.ts';
import { sampleImage } from '../../src/image/sampleImage.ts';
import { catalogueWith, findNetwork } from '../../src/models/catalogue.ts';
import { pullDependencies, removeNetwork } from '../../src/models/pull.ts';
import { deformableNetwork } from '../fixtures/deformable.ts';
import { Recorder } from '../fixtures/networks.ts';
import { int64s, ints, node } from '../fixtures/onnx.ts';
import { tinyNetwork } from '../fixtures/tinyNetwork.ts';

interface Desk {
  readonly folder: string;
  readonly config: Config;
  readonly modelsDir: string;
  /** Writes a file and returns its path. */
  file(name: string, bytes: Uint8Array): Promise<string>;
  add(file: string, options?: Partial<AddOptions>): Promise<string>;
}

async function desk(t: ExecutionContext, settings: Readonly<Record<string, string>> = {}): Promise<Desk> {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-add-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const modelsDir = path.join(folder, 'models');
  const config = loadConfig({
    CUTOUT_DATA_DIR: folder,
    CUTOUT_MODELS_DIR: modelsDir,
    CUTOUT_PORT: String(await freePort()),
    CUTOUT_SUBJECT_TYPES: 'off',
    ...settings,
  });
  return {
    folder,
    config,
    modelsDir,
    async file(name, bytes) {
      const file = path.join(folder, name);
      await writeFile(file, bytes);
      return file;
    },
    async add(file, options = {}) {
      const out = new PassThrough();
      const written = text(out);
      const { signal } = new AbortController();
      const all = { trainedOn: 'masks', yes: false, ...options } as const;
      await addNetwork(file, all, config, { out, signal }).finally(() => out.end());
      return written;
    },
  };
}

/** Bright is the subject. */
const bright = (more: Partial<Parameters<typeof tinyNetwork>[0]> = {}) =>
  tinyNetwork({ width: 64, height: 64, gain: 2, bias: 0, sigmoid: true, ...more });

const names = async (folder: string) => (await readdir(folder).catch(() => [])).sort();

test.serial(
  'a small file whose map has 4 GB is refused before it is opened, and leaves nothing',
  async (t) => {
    const { modelsDir, file, add } = await desk(t, { CUTOUT_MEMORY_LIMIT: '2GB' });
    const model = fromBinary(ModelProtoSchema, bright());
    const { graph } = model;
    const output = graph?.node.at(-1)?.output;
    const name = output?.[0] ?? '';
    if (!graph || !output) return t.fail();
    output[0] = 'plain';
    graph.initializer.push(int64s('sides', [1, 1, 32_000, 32_000]));
    graph.node.push(
      node('ConstantOfShape', ['sides'], ['zeros']),
      node('ReduceMean', ['zeros'], ['zero'], [ints('axes', [0, 1, 2, 3])]),
      node('Add', ['plain', 'zero'], [name]),
    );
    const before = process.resourceUsage().maxRSS;
    await t.throwsAsync(
      add(await file('huge.onnx', toBinary(ModelProtoSchema, model)), { normalise: 'imagenet' }),
      {
        code: 'MODEL_MEMORY',
        message:
          /^huge in fp32 takes about \d+ MB of memory and is not opened: of 2\d{3} MB \(CUTOUT_MEMORY_LIMIT\), .*\(CUTOUT_MODEL\)\.$/,
      },
    );
    // In KiB.
    t.true(process.resourceUsage().maxRSS - before < 1e6);
    t.deepEqual(await names(modelsDir), []);
  },
);

test.serial(
  'a network that finds no subject in the image is refused with a sentence, and leaves nothing',
  async (t) => {
    const { modelsDir, file, add } = await desk(t);
    const faint = await file('faint.onnx', bright({ gain: 1, bias: -4 }));
    await t.throwsAsync(add(faint, { normalise: 'imagenet' }), {
      code: 'MODEL_CHECK',
      message:
        /: No subject was found\. Check the normalisation, or give an image with a subject \(--photo\)/,
    });
    t.deepEqual(await names(modelsDir), []);
  },
);

test.serial('a network is added, checked, listed, run by its name, and removed', async (t) => {
  t.timeout(300_000);
  const { folder, config, modelsDir, file, add } = await desk(t);
  const out = await add(await file('My Net (v2).onnx', bright()), {
    normalise: 'imagenet',
    licence: 'MIT',
    title: '<My & net>',
  });
  t.regex(out, /my-net-v2 was added/);
  t.regex(out, /input {10}64x64 \(the file declares it\)/);
  t.regex(out, /output {9}probability \(it ends in Sigmoid\)/);
  const { manifest } = await findNetwork(catalogueWith(modelsDir), 'my-net-v2');
  t.like(manifest, {
    licence: { name: 'MIT', restricted: false },
    output: 'probability',
    trainedOn: 'masks',
  });
  t.true(existsSync(path.join(modelsDir, 'my-net-v2', 'preview.png')));

  const wanted = {
    catalogue: catalogueWith(modelsDir),
    modelsDir,
    device: 'cpu',
    defaultNetwork: 'isnet',
  } as const;
  const lines = (await listNetworks(wanted)).split('\n');
  t.true(
    lines.every((line) => line.length <= 80),
    lines.find((line) => line.length > 80),
  );
  t.regex(
    lines.find((line) => line.includes('my-net-v2')) ?? '',
    /^# my-net-v2 +MIT +0\.\d +\d+ fp32 +– +ready$/,
  );
  t.regex(lines.find((line) => line.includes('* isnet')) ?? '', /GPL! +88 +– .* absent$/);

  const photo = await file('photo <1>.jpg', await sampleImage());
  await add(await file('second.onnx', bright({ gain: 1 })), { normalise: 'unit' });
  const options = { out: path.join(folder, 'cut'), format: 'auto', size: '50MP', lossless: false } as const;
  const rest: RunOptions = { ...options, overwrite: false, pull: false };
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), err: new PassThrough().resume() };
  t.true(await run([photo], rest, withModel(config, 'second'), io));
  t.true((await stat(path.join(folder, 'cut', 'photo <1>.png'))).size > 1000);

  const entry = await findNetwork(catalogueWith(modelsDir), 'second');
  const pull = {
    modelsDir,
    form: 'fp32',
    observer: new Recorder(),
    dependencies: pullDependencies(),
  } as const;
  t.true(await removeNetwork(entry, pull));
  await t.throwsAsync(findNetwork(catalogueWith(modelsDir), 'second'), { code: 'MODEL_UNKNOWN' });
});

test.serial(
  'a network in float16 with DeformConv and a free size is added once its size is said',
  async (t) => {
    t.timeout(300_000);
    const { modelsDir, file, add } = await desk(t);
    const given = await file('deform.onnx', deformableNetwork({ precision: 'fp16', kind: 'still' }));
    await t.throwsAsync(add(given), { code: 'MODEL_UNDECIDED', message: /--size \(WIDTHxHEIGHT\)/ });
    t.deepEqual(await names(modelsDir), []);
    const out = await add(given, { output: 'logit', size: { width: 128, height: 64 } });
    t.regex(out, /normalisation {2}imagenet \(it has deformable convolutions, as BiRefNet\)/);
    const { manifest } = await findNetwork(catalogueWith(modelsDir), 'deform');
    t.like(manifest.input, { width: 128, height: 64 });
    t.is(manifest.file.precision, 'fp16');
  },
);

test.serial('what a run shows to be no matte is refused, and nothing of it stays', async (t) => {
  t.timeout(300_000);
  const { modelsDir, file, add } = await desk(t);
  const known = { normalise: 'imagenet' } as const;
  const constant = await file('constant.onnx', bright({ gain: 0, bias: 0.25 }));
  await t.throwsAsync(add(constant, known), {
    code: 'MODEL_CHECK',
    message: /same value \(about 0\.6\) everywhere/,
  });
  const infinite = await file('infinite.onnx', bright({ gain: Number.POSITIVE_INFINITY, sigmoid: false }));
  await t.throwsAsync(add(infinite, known), { code: 'ENGINE_MODEL' });
  const logit = await file('logit.onnx', bright({ sigmoid: false, gain: 10 }));
  await t.throwsAsync(add(logit, { ...known, output: 'probability' }), {
    code: 'MODEL_CHECK',
    message: /a probability is between 0 and 1/,
  });
  // Values in 0..1 without an operator that says so.
  const unit = await file('unit.onnx', bright({ sigmoid: false, gain: 1 }));
  await t.throwsAsync(add(unit, { normalise: 'unit' }), {
    code: 'MODEL_CHECK',
    message: /look like probabilities, although it ends in Conv\. Pass --output/,
  });
  await t.throwsAsync(add(unit, { normalise: 'unit', photo: constant }), {
    message: /^The photo .*constant\.onnx cannot be read: .*received unknown/,
  });
  t.deepEqual(await names(modelsDir), []);
  const added = await add(logit, known);
  t.regex(added, /logit: copying: 0\.0 of 0\.0 MB\n/);
  t.regex(added, /output {9}logit/);
  await t.throwsAsync(add(logit, known), {
    code: 'MODEL_EXISTS',
    message: /Give another --name, or run `cutout models remove logit` first\.$/,
  });
  await add(unit, { normalise: 'unit', output: 'probability' });
  const { manifest } = await findNetwork(catalogueWith(modelsDir), 'unit');
  t.is(manifest.output, 'probability');
});

test.serial(
  'where the size is free and a run fails, the error says that the size may be the reason',
  async (t) => {
    const { modelsDir, file, add } = await desk(t);
    const model = fromBinary(ModelProtoSchema, deformableNetwork({ precision: 'fp32', kind: 'still' }));
    // More sizes than dimensions.
    const sizes = model.graph?.initializer.find(({ name }) => name === 'from');
    Object.assign(sizes ?? {}, int64s('from', [0]));
    const given = await file('free.onnx', toBinary(ModelProtoSchema, model));
    await t.throwsAsync(add(given, { size: { width: 70, height: 66 }, normalise: 'unit' }), {
      code: 'ENGINE_MODEL',
      message: /\. Such a network may need another --size than 70x66, such as multiples of 32\.$/,
    });
    t.deepEqual(await names(modelsDir), []);
  },
);

test.serial('damaged and hostile files, names and values have codes', async (t) => {
  const { folder, modelsDir, file, add } = await desk(t);
  const good = await file('good.onnx', bright());
  const model = fromBinary(ModelProtoSchema, bright());
  const elsewhere = create(StringStringEntryProtoSchema, { key: 'location', value: '/etc/passwd' });
  model.graph?.initializer[0]?.externalData.push(elsewhere);
  const refusals: readonly [string, Partial<AddOptions>, string, RegExp?][] = [
    [path.join(folder, 'none.onnx'), {}, 'MODEL_MISSING', /^There is no file /],
    [folder, { name: 'folder' }, 'MODEL_DAMAGED', /is a folder, not an ONNX file\.$/],
    [
      await file('text.onnx', Buffer.from('not a network')),
      {},
      'MODEL_DAMAGED',
      /^The file is not an ONNX file/,
    ],
    [await file('empty.onnx', Buffer.alloc(0)), {}, 'MODEL_DAMAGED'],
    [await file('cut.onnx', bright().subarray(0, 90)), {}, 'MODEL_DAMAGED'],
    [await file('elsewhere.onnx', toBinary(ModelProtoSchema, model)), {}, 'MODEL_EXTERNAL_DATA'],
    [await file('channels.onnx', bright({ channels: 2 })), {}, 'MODEL_UNSUPPORTED'],
    [await file('inputs.onnx', bright({ secondInput: true })), {}, 'MODEL_UNSUPPORTED'],
    [good, { name: '../evil' }, 'MODEL_UNSUPPORTED'],
    [good, { name: 'isnet' }, 'MODEL_EXISTS', /Give another --name\.$/],
    [good, {}, 'MODEL_UNDECIDED'],
    [good, { normalise: 'unit', size: { width: 10, height: 10 } }, 'MODEL_UNSUPPORTED'],
  ];
  for (const [given, options, code, message] of refusals) {
    const expected = { code, ...(message && { message }) };
    await t.throwsAsync(add(given, options), expected, `${path.basename(given)} ${JSON.stringify(options)}`);
  }
  await t.throwsAsync(add(good, { mean: [0, 0, 0] }), { message: /--mean and --std belong together/ });
  t.deepEqual(await names(modelsDir), []);
});
