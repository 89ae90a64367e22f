import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { freePort } from '../../bench/lib/freePort.ts';
import { doctor } from '../../src/cli/doctor/doctor.ts';
import type { Report } from '../../src/cli/doctor/report.ts';
import { type Environment, loadConfig } from '../../src/config/readConfig.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import { EngineError, type EngineOptions, type NativeModule } from '../../src/engine/types.ts';
import { findFor } from '../../src/models/locate.ts';
import { operatorsOf } from '../../src/models/precision.ts';
import { pullNetwork } from '../../src/models/pull.ts';
import { choiceOf } from '../../src/server/openEngine.ts';
import { gpu } from '../fixtures/gpu.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { NetworkBuilder } from '../fixtures/lowPrecisionNetworks.ts';
import { sha256, type Workplace, workplace } from '../fixtures/networks.ts';
import { wideNetwork, wideTable } from '../fixtures/wide.ts';

interface Examined {
  readonly healthy: boolean;
  readonly out: string;
}

async function examine(
  place: Workplace,
  environment: Environment = {},
  {
    json = true,
    measure = true,
    load,
  }: { json?: boolean; measure?: boolean; load?: () => NativeModule } = {},
): Promise<Examined> {
  // Isolates the doctor from this machine: no running server and no data folder of a developer.
  const config = loadConfig({
    CUTOUT_DATA_DIR: place.dataDir,
    CUTOUT_PORT: String(await freePort()),
    CUTOUT_MODELS_DIR: place.modelsDir,
    CUTOUT_MODEL: 'tiny',
    ...environment,
  });
  const out = new PassThrough();
  const err = new PassThrough();
  err.resume();
  const read = text(out);
  const healthy = await doctor(
    config,
    { json, measure },
    { out, err, catalogueDir: place.catalogueDir, ...(load && { load }) },
  );
  out.end();
  return { healthy, out: await read };
}

const report = ({ out }: Examined) => JSON.parse(out) as Report;

/** A models folder with a network of both precisions, pulled in floats. */
async function pulled(t: ExecutionContext): Promise<Workplace> {
  const place = await workplace(t);
  const file = wideNetwork();
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' }, file, {
    int8: 'int8.json',
    features: undefined,
  });
  await writeFile(path.join(entry.folder, 'int8.json'), JSON.stringify(wideTable(sha256(file))));
  await pullNetwork(entry, place.options());
  return place;
}

/** The addon, on a processor with other instruction sets and without operators of Cutout for them. */
const onProcessor = (...instructionSets: string[]): NativeModule => {
  const native = loadAddon();
  const versions = () => ({ ...native.versions(), instructionSets, operators: [] });
  return { ...native, versions, Engine: native.Engine };
};

test.serial('machine, network and a measured run of each precision, as JSON', async (t) => {
  const place = await pulled(t);
  const found = await examine(place, {}, { load: () => onProcessor('avx512_vnni', 'avx512') });
  t.true(found.healthy, found.out);
  const { machine, network, runtime, measured, problems, threads } = report(found);
  t.deepEqual(problems, []);
  t.deepEqual(machine?.instructionSets, ['avx512_vnni', 'avx512']);
  t.true((machine?.cores ?? 0) >= 1);
  t.deepEqual(network, {
    name: 'tiny',
    device: 'cpu',
    precision: 'int8',
    operators: null,
    because: 'not measured',
  });
  t.regex(runtime?.version ?? '', /^\d+\.\d+/);
  t.true(threads.intraOpThreads >= 1);
  t.deepEqual(
    measured.map(({ precision, used }) => [precision, used]),
    [
      ['int8', true],
      ['fp32', false],
    ],
  );
  for (const { runMs, openMs, bytes } of measured) t.true(runMs > 0 && openMs > 0 && bytes > 0);
  t.deepEqual(
    (await place.files()).filter((name) => name.endsWith('.onnx')),
    ['prepared.int8.onnx', 'prepared.onnx', 'source.onnx'],
  );
});

/** With Cutout's kernels for a GPU the driver is what is missing, without them the provider. */
const withoutGpu = (before = '') =>
  new RegExp(
    `^${before}CUDA was asked for and cannot be used: .*(Run \`cutout runtime install cuda\`|the NVIDIA driver is not installed)`,
    'm',
  );

test.serial('a GPU: what is missing and how to get it, and on which GPU it was run', async (t) => {
  const place = await pulled(t);
  const { healthy, out } = await examine(place, { CUTOUT_DEVICE: 'cuda' }, { json: false });
  t.false(healthy);
  t.regex(out, withoutGpu('Problem: '));
  t.regex(
    out,
    /run with cuda on one H100 alone\. .*`npm run bench -- gpu` proves it on another GPU \(docs\/gpu\.md\)/,
  );
});

test.serial('several GPUs: each of the settings is opened and has a line', async (t) => {
  const place = await pulled(t);
  const opened: (readonly number[])[] = [];
  class TwoGpus {
    readonly #ids: readonly number[];
    constructor({ deviceIds }: EngineOptions) {
      opened.push(deviceIds);
      this.#ids = deviceIds;
    }
    gpus = () => this.#ids.map((id) => ({ ...gpu, id }));
    close = async () => {};
  }
  const load = () =>
    ({
      ...loadAddon(),
      computeCapabilities: () => ['8.9', '8.9'],
      Engine: TwoGpus,
    }) as unknown as NativeModule;
  const environment = { CUTOUT_DEVICE: 'cuda', CUTOUT_DEVICE_ID: '0,3' };
  const { out } = await examine(place, environment, { json: false, measure: false, load });
  t.deepEqual(opened, [[0, 3]]);
  t.regex(out, /^GPU +0: NVIDIA L4, compute capability 8\.9, .*\nGPU +3: NVIDIA L4, /m);
  const found = await examine(place, environment, { measure: false, load });
  t.deepEqual(
    report(found).gpus.map(({ id }) => id),
    [0, 3],
  );
});

/** A models folder with a network that Cutout's operators support. */
async function pulledForOperators(t: ExecutionContext): Promise<Workplace> {
  const place = await workplace(t);
  const builder = new NetworkBuilder(5);
  const output = builder.logit(builder.conv('image', { channels: 16 }));
  const { file, table } = builder.build(output, 32, 32);
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' }, file, {
    int8: 'int8.json',
    features: undefined,
  });
  await writeFile(
    path.join(entry.folder, 'int8.json'),
    JSON.stringify({ ...table, sourceSha256: sha256(file) }),
  );
  await pullNetwork(entry, place.options());
  return place;
}

test.serial(
  "Cutout's operators are used where the processor has a kernel, unless the setting says off",
  async (t) => {
    const [best] = operatorsOf('int8', loadAddon().versions().operators);
    if (best === undefined) {
      sayLeftOut(t, 'Cutout has no operators for this processor');
      return;
    }
    const place = await pulledForOperators(t);
    const found = report(await examine(place));
    t.deepEqual(found.problems, []);
    t.is(found.network?.operators, best);
    t.deepEqual(
      found.measured.map(({ precision, operators, used }) => [precision, operators, used]),
      [
        ['int8', best, true],
        ['int8', null, false],
        ['fp32', null, false],
      ],
    );
    t.regex(
      (await examine(place, {}, { json: false })).out,
      new RegExp(`Operators +Cutout's operators for ${best}\\n`),
    );
    const off = report(await examine(place, { CUTOUT_OPERATORS: 'off' }));
    t.is(off.network?.operators, null);
    const standard = ['int8', null];
    const floats = ['fp32', null];
    t.deepEqual(
      off.measured.map(({ precision, operators, used }) => [precision, operators, used]),
      [
        [...standard, true],
        ['int8', best, false],
        [...floats, false],
      ],
    );
    t.true((await place.files()).includes('prepared.int8-operators.onnx'));
  },
);

test.serial(
  'a network without a table is computed in bf16 where it was measured to lose little',
  async (t) => {
    const [best] = operatorsOf('bf16', loadAddon().versions().operators);
    if (best === undefined) {
      sayLeftOut(t, 'this processor has no dot products of bf16');
      return;
    }
    const place = await workplace(t);
    const builder = new NetworkBuilder(5);
    const { file } = builder.build(builder.logit(builder.conv('image', { channels: 16 })), 32, 32);
    const source = { kind: 'file', path: 'published.onnx' } as const;
    const entry = await place.entry(source, file, { int8: undefined, features: undefined, bf16: 0.001 });
    await pullNetwork(entry, place.options());
    const { network, measured, problems } = report(await examine(place));
    t.deepEqual(problems, []);
    t.is(network?.precision, 'bf16');
    t.is(network?.operators, best);
    t.deepEqual(
      measured.map(({ precision, operators, used }) => [precision, operators, used]),
      [
        ['bf16', best, true],
        ['fp32', null, false],
      ],
    );
    t.true((await place.files()).includes('prepared.bf16.onnx'));
    const refused = () => ({ ...loadAddon().versions(), refusedOperators: ['amx_bf16'] });
    const warned = await examine(place, {}, { load: () => ({ ...loadAddon(), versions: refused }) });
    t.regex(report(warned).warnings.join(' '), /operators for amx_bf16 compute wrongly.*not used/);
  },
);

test.serial("a network that Cutout's operators do not support is computed by ONNX Runtime's", async (t) => {
  if (operatorsOf('int8', loadAddon().versions().operators).length === 0) {
    sayLeftOut(t, 'Cutout has no operators for this processor');
    return;
  }
  const { network, measured, problems } = report(await examine(await pulled(t)));
  t.deepEqual(problems, []);
  t.is(network?.precision, 'int8');
  t.is(network?.operators, null);
  t.deepEqual(
    measured.map(({ precision, operators }) => [precision, operators]),
    [
      ['int8', null],
      ['fp32', null],
    ],
  );
});

test.serial('the choice that was measured is the one in use, with its times', async (t) => {
  const place = await pulled(t);
  const load = () => onProcessor('avx2');
  const environment = { CUTOUT_MODEL: 'tiny', CUTOUT_MODELS_DIR: place.modelsDir };
  const { engine } = loadConfig({ CUTOUT_DATA_DIR: place.dataDir, ...environment });
  const { manifest } = await findFor('tiny', { ...place, modelsDir: place.modelsDir });
  const { choices, kept } = choiceOf(manifest, engine, load().versions(), 'auto');
  t.deepEqual(
    choices.map(({ precision }) => precision),
    ['int8', 'fp32'],
  );
  await kept.keep({ precision: 'fp32', because: 'measured: 2 ms of processor time; int8 3 ms' });
  const { network, measured } = report(await examine(place, {}, { load }));
  t.is(network?.precision, 'fp32');
  t.is(network?.because, 'measured: 2 ms of processor time; int8 3 ms');
  t.deepEqual(
    measured.map(({ precision, used }) => [precision, used]),
    [
      ['fp32', true],
      ['int8', false],
    ],
  );
});

test.serial('text output: a table, the form in use, and that no problem was found', async (t) => {
  const { out, healthy } = await examine(
    await pulled(t),
    {},
    { json: false, load: () => onProcessor('avx_vnni') },
  );
  t.true(healthy);
  t.regex(out, /^Cutout +\d/);
  t.regex(out, /Precision +int8 \(not measured\)\n/);
  t.regex(out, /Operators +ONNX Runtime's operators\n/);
  t.regex(out, /\* +int8 +ONNX Runtime's +\d+(\.\d)? MB +\d+ ms +\d+ ms +\d+ ms/);
  t.regex(out, / +fp32 +ONNX Runtime's +\d+(\.\d)? MB/);
  t.regex(out, /Ready to serve\.\n$/);
});

test.serial('a missing network is a problem with its remedy, and the exit status shows it', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'file', path: 'published.onnx' });
  await mkdir(place.modelsDir, { recursive: true });
  const json = await examine(place, {}, { measure: false });
  t.false(json.healthy);
  t.deepEqual(report(json).problems, [
    `The network tiny is not in ${place.modelsDir}. Run \`cutout models pull tiny\`.`,
  ]);
  const shown = await examine(place, {}, { json: false });
  t.regex(shown.out, /\nProblem: The network tiny is not in/);
  t.notRegex(shown.out, /Ready/);
});

test.serial('the second network is shown; one that was named and is missing is a problem', async (t) => {
  const place = await pulled(t);
  const other = await place.entry({ kind: 'file', path: 'published.onnx' }, undefined, { name: 'other' });
  const named = { CUTOUT_SECOND_MODEL: 'other' };
  const look = (more = {}, json = true) => examine(place, { ...named, ...more }, { json, measure: false });
  const missing = await look();
  t.false(missing.healthy);
  t.deepEqual(report(missing).second, { name: 'other', state: 'missing' });
  t.deepEqual(report(missing).problems, [
    `The second network other is not in ${place.modelsDir}. Run \`cutout models pull other\`.`,
  ]);
  const off = await look({ CUTOUT_SECOND_MODEL: 'off' });
  t.true(off.healthy);
  t.is(report(off).second, null);

  await pullNetwork(other, place.options());
  const found = await look({}, false);
  t.true(found.healthy, found.out);
  t.regex(found.out, /Second network +other\n/);
  await writeFile(path.join(place.modelsDir, 'other', 'source.onnx'), 'junk');
  t.deepEqual(report(await look()).second, { name: 'other', state: 'damaged' });
});

test.serial('where the second network of auto is missing, the first one runs alone: a note', async (t) => {
  const place = await pulled(t);
  const file = path.join(place.catalogueDir, 'tiny', 'model.json');
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...manifest, second: 'other' }));
  await place.entry({ kind: 'file', path: 'published.onnx' }, undefined, { name: 'other' });
  const found = await examine(place, { CUTOUT_SECOND_MODEL: 'auto' }, { measure: false });
  t.true(found.healthy, found.out);
  t.deepEqual(report(found).second, { name: 'other', state: 'missing' });
  t.deepEqual(report(found).warnings, [
    `The second network other is not in ${place.modelsDir}. Run \`cutout models pull other\`, or tiny runs alone.`,
  ]);
});

test.serial(
  'an unknown network, a missing library and an addon that cannot be loaded are all reported',
  async (t) => {
    const place = await pulled(t);
    const unknown = await examine(place, { CUTOUT_MODEL: 'huge' });
    t.false(unknown.healthy);
    t.deepEqual(report(unknown).problems, [
      'There is no network named "huge"; there are tiny. Another one is added from its ONNX file: `cutout models add FILE`.',
    ]);

    const library = path.join(place.modelsDir, 'none.so');
    const missing = await examine(place, { CUTOUT_RUNTIME: library }, { measure: false });
    t.deepEqual(report(missing).problems, [`The ONNX Runtime library '${library}' does not exist.`]);

    const broken = await examine(
      place,
      {},
      {
        load: () => {
          throw new EngineError('ENGINE_RUNTIME', 'The native addon cannot be loaded.');
        },
      },
    );
    t.false(broken.healthy);
    t.deepEqual(report(broken).problems, ['The native addon cannot be loaded.']);
    t.is(report(broken).machine, null);
  },
);

test.serial('a GPU that cannot be used is a problem, also where nothing is measured', async (t) => {
  const place = await pulled(t);
  const found = await examine(place, { CUTOUT_DEVICE: 'cuda' }, { measure: false });
  t.false(found.healthy);
  t.is(report(found).problems.length, 1);
  t.regex(report(found).problems[0] ?? '', withoutGpu());
});

test.serial('a setting that cannot be satisfied is a problem', async (t) => {
  const place = await workplace(t);
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' });
  await pullNetwork(entry, place.options());
  const found = await examine(place, { CUTOUT_PRECISION: 'int8' });
  t.false(found.healthy);
  t.regex(report(found).problems[0] ?? '', /tiny .*has no 8-bit form.*to auto or fp32/);
});
