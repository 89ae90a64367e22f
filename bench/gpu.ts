import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { defaultRuntimePath, loadAddon } from '../src/engine/addon.ts';
import { ensureNetwork } from '../src/models/ensure.ts';
import { preparedFacts } from '../src/models/locate.ts';
import { findRuntime } from '../src/runtime/installed.ts';
import { type BenchCommand, type Context, values } from './lib/command.ts';
import { BenchFailure } from './lib/failure.ts';
import { computed, type Figure, type Outcome, type Part } from './lib/outcome.ts';
import { modelsFolder, root } from './lib/paths.ts';

const native = path.join(root, 'build', 'native');
const program = path.join(native, 'cutout_gpu_check');
const kernels = path.join(native, 'Release', 'libcutout_cuda.so');

interface Options {
  readonly device: string;
  readonly provider: 'cuda' | 'tensorrt';
  readonly network: string;
  readonly batch: number;
  readonly cases: number;
  readonly seconds: number;
  readonly work: number;
  readonly peak?: number;
}

export const command: BenchCommand = {
  name: 'gpu',
  title: 'A GPU: proof and throughput',
  summary:
    'on a machine with a GPU: driver, libraries, every kernel against the CPU, the network in each size of batch; ends with 3 without a GPU',
  shared: { seconds: 5 },
  unavailable: () =>
    existsSync(program) ? undefined : 'cutout_gpu_check is not built: run `npm run setup -- --tests`',
  options: (command: Command) =>
    command
      .option('--device <number>', 'GPU; host: the CPU plays its part, to try the bench itself', '0')
      .addOption(
        new Option('--provider <name>', 'of ONNX Runtime').choices(['cuda', 'tensorrt']).default('cuda'),
      )
      .option('--network <name>', 'network of the catalogue', 'isnet')
      .option('--batch <n>', 'largest batch', values.whole, 8)
      .option('--cases <n>', 'random cases of all kernels', values.whole, 2000)
      .option('--work <tflop>', 'of the network for an image', values.number, 0.32)
      .option('--peak <tflops>', "the card's matrix peak, for the share of it", values.number),
};

const reportSchema = z.object({
  ok: z.boolean(),
  device: z.string(),
  findings: z.array(z.object({ part: z.string(), ok: z.boolean(), said: z.string() })),
  kernels: z.array(
    z.object({ name: z.string(), cases: z.number(), largest: z.number().nullable(), limit: z.number() }),
  ),
  latencies: z.array(
    z.object({
      batch: z.number(),
      ms: z.number(),
      imagesPerSecond: z.number(),
      notFinite: z.number(),
      meanDifference: z.number(),
      p999Difference: z.number(),
    }),
  ),
  load: z
    .object({
      share: z.number(),
      offeredPerSecond: z.number(),
      donePerSecond: z.number(),
      p50Ms: z.number(),
      p99Ms: z.number(),
    })
    .optional(),
  engine: z
    .object({
      rounds: z.array(
        z.object({
          width: z.number(),
          height: z.number(),
          atATime: z.number(),
          imagesPerSecond: z.number(),
        }),
      ),
    })
    .optional(),
  deviceMemoryBytes: z.number(),
  loadMs: z.number(),
  warmUpMs: z.number(),
});

/** What cutout_gpu_check writes (test/gpu_check/report.cc). */
export type Checked = z.infer<typeof reportSchema>;

/** Its arguments that name the network and its float32 reference. Rejects with ModelError. */
async function networkArguments({ network, device, provider }: Options): Promise<string[]> {
  const place = { modelsDir: modelsFolder(), pull: false, observer: { notice() {}, progress() {} } };
  const onGpu = device !== 'host';
  const spec = await ensureNetwork(network, { ...place, device: onGpu ? provider : 'cpu' });
  const reference = onGpu ? await ensureNetwork(network, { ...place, device: 'cpu' }) : spec;
  const facts = onGpu
    ? await preparedFacts(network, { modelsDir: modelsFolder(), device: provider })
    : undefined;
  return [
    ...[facts?.operators ? '--program' : '--network', spec.path, '--reference', reference.path],
    ...['--width', String(spec.width), '--height', String(spec.height)],
    ...(spec.output === 'logit' ? ['--logit'] : []),
    ...(facts?.precision === 'fp16' ? ['--fp16'] : []),
  ];
}

/** Those that name the libraries: of the installed runtime, else the npm package's, with which Cutout's own kernels run. */
function libraryArguments({ device }: Options): string[] {
  if (device === 'host') return ['--runtime', defaultRuntimePath()];
  const data = process.env['CUTOUT_DATA_DIR'] ?? path.join(root, 'data');
  const installed = findRuntime(path.join(data, 'runtimes'), 'cuda');
  const named = process.env['CUTOUT_RUNTIME'] ?? installed?.runtimePath ?? defaultRuntimePath();
  const libraries = named === installed?.runtimePath ? installed.libraries : [];
  return ['--runtime', named, ...libraries.flatMap((file) => ['--library', file])];
}

/** Runs the program. Rejects with BenchFailure: its sentence and its exit status. */
async function check(options: Options, progress: Context['progress']): Promise<Checked> {
  const { device, provider, batch, cases, seconds } = options;
  const libraries = libraryArguments(options);
  // Without a GPU the program says so; nothing is prepared for one.
  const checksNetwork = device === 'host' || loadAddon().computeCapabilities().length > 0;
  const network = checksNetwork ? await networkArguments(options) : [];
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-gpu-'));
  try {
    const json = path.join(folder, 'report.json');
    const args = [
      ...['--device', device, '--provider', provider, '--batch', String(batch), '--cases', String(cases)],
      ...['--seconds', String(seconds), '--json', json],
      ...(existsSync(kernels) ? ['--kernels', kernels] : []),
      ...libraries,
      ...network,
    ];
    progress(`cutout_gpu_check on ${device}`);
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 1));
    });
    const [said, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    if (code !== 0) throw new BenchFailure(`${said}${errors}`.trim(), code);
    return reportSchema.parse(JSON.parse(await readFile(json, 'utf8')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The figures of a report; the goals are those of docs/gpu.md. */
export function figuresOf(
  { latencies, load, engine, deviceMemoryBytes, loadMs, warmUpMs }: Checked,
  { work, peak }: Pick<Options, 'work' | 'peak'>,
): Figure[] {
  const best = Math.max(...latencies.map(({ imagesPerSecond }) => imagesPerSecond));
  return [
    ...latencies.map(({ batch, ms }) => computed(`gpu.batch.${batch}`, `a batch of ${batch}`, 'ms', ms)),
    computed('gpu.rate', 'network in its best batch', 'images/s', best),
    ...(peak === undefined
      ? []
      : [
          computed('gpu.share', "share of the card's matrix peak", '', (best * work) / peak, {
            atLeast: 0.4,
          }),
        ]),
    ...(load
      ? [
          computed('gpu.p50', 'median latency at 80 % load', 'ms', load.p50Ms),
          computed('gpu.spread', 'p99 over p50 at 80 % load', '×', load.p99Ms / load.p50Ms, { atMost: 3 }),
        ]
      : []),
    ...(engine?.rounds ?? []).map(({ width, height, atATime, imagesPerSecond }) =>
      computed(
        `gpu.engine.${width}x${height}.${atATime}`,
        `mattes of ${width} × ${height}, ${atATime} at a time`,
        'images/s',
        imagesPerSecond,
      ),
    ),
    computed('gpu.memory', 'device memory of the network in all batches', 'MB', deviceMemoryBytes / 1e6),
    computed('gpu.load', 'to open the network', 'ms', loadMs),
    computed('gpu.first', 'its first run', 'ms', warmUpMs),
  ];
}

export async function run(options: Options, { progress }: Context): Promise<Outcome> {
  const checked = await check(options, progress);
  const parts: Part[] = [
    {
      kind: 'table',
      title: 'What was looked at',
      columns: ['part', 'result'],
      rows: checked.findings.map(({ part, said }) => [part, said]),
    },
    {
      kind: 'bars',
      title: 'Images per second by batch',
      unit: 'images/s',
      bars: checked.latencies.map(({ batch, imagesPerSecond }) => ({
        label: String(batch),
        value: imagesPerSecond,
      })),
    },
    {
      kind: 'table',
      title: 'Batches',
      columns: ['batch', 'ms', 'images/s', 'mean difference', '99.9 % difference'],
      rows: checked.latencies.map((each) => [
        each.batch,
        each.ms,
        each.imagesPerSecond,
        each.meanDifference,
        each.p999Difference,
      ]),
      note: 'Differences of probabilities from float32 on the CPU.',
    },
    {
      kind: 'table',
      title: 'Kernels against the CPU',
      columns: ['kernel', 'cases', 'largest difference', 'limit'],
      rows: checked.kernels.map(({ name, cases, largest, limit }) => [name, cases, largest, limit]),
    },
  ];
  const { network, batch, provider, cases } = options;
  return {
    settings: { device: checked.device, network, batch, provider, cases },
    figures: figuresOf(checked, options),
    parts,
    notes:
      options.device === 'host'
        ? ['**Not run on a GPU.** The CPU played its part, so the times say nothing about one.']
        : [],
  };
}
