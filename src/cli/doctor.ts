import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import os from 'node:os';
import type { Config } from '../config/readConfig.ts';
import { profiles } from '../cutout/qualityProfile.ts';
import { loadAddon } from '../engine/addon.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import { availableCores, describeThreads } from '../engine/threads.ts';
import { EngineError, type Gpu, type NativeModule } from '../engine/types.ts';
import { UserError } from '../errors.ts';
import { type CatalogueEntry, catalogueWith, findNetwork } from '../models/catalogue.ts';
import { ensureNetwork } from '../models/ensure.ts';
import { ModelError } from '../models/error.ts';
import { type Form, networkFiles, type Precision, precisionOfForm } from '../models/layout.ts';
import { findFor, gpuSpecOf, preparedFacts } from '../models/locate.ts';
import { rememberRun } from '../models/measured.ts';
import type { Observer } from '../models/observer.ts';
import {
  choosePrecision,
  dotProductOf,
  formFor,
  formsOf,
  operatorsOf,
  operatorsText,
  type PrecisionChoice,
  refusedText,
} from '../models/precision.ts';
import { type SourceState, verifySource } from '../models/verify.ts';
import { RuntimeError } from '../runtime/error.ts';
import { commit, version } from '../server/installation.ts';
import { deviceIdsOf, librariesOf, relayTo, secondNetworkOf, threadsOf } from '../server/openEngine.ts';
import { checkInstall } from './doctor/check.ts';
import type { Finding } from './doctor/finding.ts';
import { median, megabytes } from './figures.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { table } from './table.ts';

/** Said wherever a GPU is the device. */
const NOT_RUN =
  'This release of Cutout was run with cuda on one H100 alone. In its repository, `npm run bench -- gpu` proves it on another GPU (docs/gpu.md).';

/** Runs measured after the first one; their median is reported. */
const RUNS = 5;

interface Measured {
  readonly precision: Precision;
  /** Instruction set of Cutout's operators that computed a part of it; null: ONNX Runtime's computed all. */
  readonly operators: string | null;
  /** Whether the server would use it now. */
  readonly used: boolean;
  readonly file: string;
  readonly bytes: number;
  /** Milliseconds to open the file, of the first run and of the median run after it. */
  readonly openMs: number;
  readonly firstRunMs: number;
  readonly runMs: number;
  /** Resident memory added by opening and running the network, in bytes. */
  readonly memoryBytes: number;
}

/** Output of `cutout doctor --json`. */
export interface Report {
  readonly cutout: string;
  /** null: unknown. */
  readonly commit: string | null;
  readonly node: string;
  readonly machine: {
    readonly system: string;
    readonly processor: string;
    /** Cores this process may use. */
    readonly cores: number;
    readonly memoryBytes: number;
    readonly instructionSets: readonly string[];
    /** The instruction set an 8-bit network would use; null: none. */
    readonly dotProduct: string | null;
    /** Compiled version of the pixel loops that is used. */
    readonly simd: string;
  } | null;
  readonly runtime: { readonly file: string; readonly version: string } | null;
  readonly network: {
    readonly name: string;
    readonly device: string;
    readonly precision: Precision;
    /** Instruction set of Cutout's operators that would compute a part of it; null: ONNX Runtime's compute all. */
    readonly operators: string | null;
    readonly because: string;
  } | null;
  /** The network that runs beside it in this profile; null: none. */
  readonly second: { readonly name: string; readonly state: SourceState } | null;
  /** The GPUs that were opened, in the order of CUTOUT_DEVICE_ID; the network was measured on all of them. */
  readonly gpus: readonly Gpu[];
  readonly threads: {
    readonly workers: number;
    readonly intraOpThreads: number;
    readonly pixelThreads: number;
  };
  readonly measured: readonly Measured[];
  /** Findings about stores, clock, disk and limits. */
  readonly install: readonly Finding[];
  /** What an operator may want to change; nothing is broken. */
  readonly warnings: readonly string[];
  /** What keeps the server from working. Empty: exit status 0. */
  readonly problems: readonly string[];
}

type Libraries = Awaited<ReturnType<typeof librariesOf>>;

interface DoctorOptions {
  readonly json: boolean;
  /** Whether networks are opened and run. */
  readonly measure: boolean;
}

interface DoctorDependencies {
  readonly out: NodeJS.WritableStream;
  /** Progress only. */
  readonly err: Output;
  readonly catalogueDir?: string;
  readonly load?: () => NativeModule;
}

const isForPeople = (error: unknown): error is Error =>
  error instanceof ModelError ||
  error instanceof RuntimeError ||
  error instanceof EngineError ||
  error instanceof UserError;

class Doctor {
  readonly #config: Config;
  readonly #dependencies: DoctorDependencies;
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  #gpus: readonly Gpu[] = [];

  constructor(config: Config, dependencies: DoctorDependencies) {
    this.#config = config;
    this.#dependencies = dependencies;
  }

  async #try<T>(work: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!isForPeople(error)) throw error;
      this.problems.push(error.message);
      return undefined;
    }
  }

  async examine(measure: boolean): Promise<Report> {
    const config = this.#config.engine;
    const threads = threadsOf(config);
    const native = await this.#try(() => (this.#dependencies.load ?? loadAddon)());
    const libraries = await this.#try(() => librariesOf(config));
    const runtimeFile = libraries?.runtimePath;
    const hasRuntime = runtimeFile !== undefined && existsSync(runtimeFile);
    if (runtimeFile !== undefined && !hasRuntime) {
      this.problems.push(`The ONNX Runtime library '${runtimeFile}' does not exist.`);
    }
    const versions = native?.versions();
    const entry = await this.#try(() =>
      findNetwork(catalogueWith(config.modelsDir, this.#dependencies.catalogueDir), config.model),
    );
    const choice =
      entry &&
      versions &&
      (await this.#try(() =>
        choosePrecision(entry.manifest, {
          device: config.device,
          requested: config.precision,
          requestedOperators: config.operators,
          instructionSets: versions.instructionSets,
          operators: versions.operators,
        }),
      ));
    if (choice?.warning) this.warnings.push(choice.warning);
    const refused = versions && refusedText(versions);
    if (refused !== undefined) this.warnings.push(refused);
    const measured =
      native && libraries && entry && choice
        ? await this.#networks(native, libraries, entry, choice, measure)
        : [];
    this.#compare(measured);
    if (native && libraries && hasRuntime && !measure && config.device !== 'cpu')
      await this.#try(() => this.#lookForGpus(native, libraries));
    const second = await this.#try(() => this.#lookForSecond());
    const inUse = measured.find(({ used }) => used);
    const install = await checkInstall(this.#config);
    for (const { state, said, todo } of install) {
      if (state === 'problem') this.problems.push(`${said} ${todo ?? ''}`.trim());
    }
    return {
      cutout: version(),
      commit: commit() ?? null,
      node: process.version,
      machine: versions
        ? {
            system: `${os.type()} ${os.release()} ${os.arch()}`,
            processor: os.cpus()[0]?.model.trim() ?? 'unknown',
            cores: availableCores(),
            memoryBytes: os.totalmem(),
            instructionSets: versions.instructionSets,
            dotProduct: dotProductOf(versions.instructionSets) ?? null,
            simd: versions.simd,
          }
        : null,
      // Known once an engine has opened the library.
      runtime:
        runtimeFile === undefined
          ? null
          : { file: runtimeFile, version: native?.versions().onnxruntime ?? '' },
      network: choice
        ? {
            name: config.model,
            device: config.device,
            precision: choice.precision,
            operators: inUse ? inUse.operators : (choice.operators ?? null),
            because: choice.because,
          }
        : null,
      second: second ?? null,
      gpus: this.#gpus,
      threads,
      measured,
      install,
      warnings: this.warnings,
      problems: this.problems,
    };
  }

  /** The second network of this profile; undefined: none. Reports one that is missing or damaged. */
  async #lookForSecond(): Promise<Report['second'] | undefined> {
    const { engine, cutout } = this.#config;
    const { model, secondModel, modelsDir } = engine;
    const place = { ...engine, catalogueDir: this.#dependencies.catalogueDir };
    const name = await secondNetworkOf(place, profiles[cutout.profile]);
    if (name === undefined) return undefined;
    const { manifest } = await findFor(name, place);
    const state = await verifySource(networkFiles(modelsDir, manifest), manifest);
    if (state !== 'ok') {
      const what = state === 'missing' ? `is not in ${modelsDir}` : 'is damaged';
      const needed = secondModel !== 'auto' || state !== 'missing';
      (needed ? this.problems : this.warnings).push(
        `The second network ${name} ${what}. Run \`cutout models pull ${name}\`${needed ? '' : `, or ${model} runs alone`}.`,
      );
    }
    return { name, state };
  }

  /** Prepares (if necessary) and measures the network in every form of this device. */
  async #networks(
    native: NativeModule,
    libraries: Libraries,
    entry: CatalogueEntry,
    choice: PrecisionChoice,
    measure: boolean,
  ): Promise<Measured[]> {
    const { modelsDir } = this.#config.engine;
    const { manifest } = entry;
    const state = await verifySource(networkFiles(modelsDir, manifest), manifest);
    if (state !== 'ok') {
      this.problems.push(
        `The network ${manifest.name} ${state === 'missing' ? `is not in ${modelsDir}` : 'is damaged'}. Run \`cutout models pull ${manifest.name}\`.`,
      );
      return [];
    }
    const results: Measured[] = [];
    // The one in use first, so that its errors are reported even if another one fails.
    const used = formFor(choice);
    const { operators } = native.versions();
    const forms = [
      used,
      ...formsOf(manifest, this.#config.engine.device, operators).filter((each) => each !== used),
    ];
    for (const form of measure ? forms : []) {
      const known = operatorsOf(precisionOfForm(form), operators);
      const kernel = known.find((name) => name === choice.operators) ?? known[0];
      const result = await this.#try(() =>
        this.#measure(native, libraries, entry, { form, kernel, used: form === used }),
      );
      // A network that Cutout's operators do not support is the same in both forms.
      if (result && !results.some((each) => nameOf(each) === nameOf(result))) results.push(result);
    }
    return results;
  }

  #engine(native: NativeModule, libraries: Libraries, observer: Observer): Engine {
    const { device } = this.#config.engine;
    const deviceIds = deviceIdsOf(this.#config.engine);
    const options = { provider: device, deviceIds, queueLimit: 1, idleReleaseMs: 0 };
    return createEngine(
      native,
      { ...threadsOf(this.#config.engine), ...libraries, ...options },
      device === 'cpu' ? undefined : relayTo(observer),
    );
  }

  /** Opens the device alone. Rejects with EngineError if it cannot be used. */
  async #lookForGpus(native: NativeModule, libraries: Libraries): Promise<void> {
    const engine = this.#engine(
      native,
      libraries,
      progressOn(this.#dependencies.err, this.#config.engine.model),
    );
    this.#gpus = engine.gpus();
    await engine.close(0);
  }

  async #measure(
    native: NativeModule,
    libraries: Libraries,
    { manifest }: CatalogueEntry,
    { form, kernel, used }: { form: Form; kernel: string | undefined; used: boolean },
  ): Promise<Measured> {
    const { modelsDir, device } = this.#config.engine;
    const observer = progressOn(this.#dependencies.err, manifest.name);
    const { catalogueDir } = this.#dependencies;
    const place = { modelsDir, device, form, ...(catalogueDir !== undefined && { catalogueDir }) };
    const found = await ensureNetwork(manifest.name, { ...place, pull: false, observer }).finally(() =>
      observer.done(),
    );
    const facts = await preparedFacts(manifest.name, place);
    const operators = facts.operators && form !== 'gpu' ? kernel : undefined;
    const network = {
      ...(form === 'gpu' ? gpuSpecOf(found, facts) : found),
      ...(operators !== undefined && { operators }),
      fp16: form === 'fp16',
    };
    const before = process.memoryUsage.rss();
    const engine = this.#engine(native, libraries, observer);
    try {
      this.#gpus = engine.gpus();
      const { loadMs, warmUpMs } = await engine.load(network);
      const size = { width: 64, height: 64 };
      const runs: number[] = [];
      for (let run = 0; run < RUNS; run++) {
        const data = new Uint8Array(size.width * size.height * 4).fill(255);
        const plan = { network: network.name, hiddenColour: 'clear', ...size } as const;
        runs.push((await engine.matte({ data, ...size }, plan)).inferMs);
      }
      const runMs = median(runs) ?? Number.NaN;
      if (used) await rememberRun(modelsDir, manifest, { device, file: network.path, runMs });
      return {
        precision: precisionOfForm(form),
        operators: operators ?? null,
        used,
        file: network.path,
        bytes: (await stat(network.path)).size,
        openMs: loadMs,
        firstRunMs: warmUpMs,
        runMs,
        memoryBytes: process.memoryUsage.rss() - before,
      };
    } finally {
      await engine.close(0);
    }
  }

  #compare(measured: readonly Measured[]): void {
    const used = measured.find((each) => each.used);
    const fastest = [...measured].sort((a, b) => a.runMs - b.runMs)[0];
    if (!used || !fastest || fastest.runMs > 0.8 * used.runMs) return;
    const settings = [
      ...(fastest.precision === used.precision ? [] : [`CUTOUT_PRECISION=${fastest.precision}`]),
      ...(fastest.precision === 'fp32' ? [] : [`CUTOUT_OPERATORS=${fastest.operators ?? 'off'}`]),
    ];
    this.warnings.push(
      `${nameOf(fastest)} takes ${(fastest.runMs / used.runMs).toFixed(2)} of the time of ${nameOf(used)} on this machine; ${settings.join(' ')} selects it.`,
    );
  }
}

/** A measured form for a person. */
const nameOf = ({ precision, operators }: Pick<Measured, 'precision' | 'operators'>) =>
  operators === null ? precision : `${precision} (${operators})`;

const ms = (value: number) => `${value.toFixed(0)} ms`;

function describe(report: Report): string {
  const { machine, network, second, runtime, measured } = report;
  const built = report.commit === null ? '' : ` (${report.commit})`;
  const lines: [string, string][] = [['Cutout', `${report.cutout}${built} on Node.js ${report.node}`]];
  const ownOperators = network?.precision === 'int8' ? network.operators : null;
  const eightBits = machine?.dotProduct ?? ownOperators;
  if (machine) {
    lines.push(
      ['Machine', `${machine.processor}, ${megabytes(machine.memoryBytes)} of memory, ${machine.system}`],
      ['Instructions', machine.instructionSets.join(', ') || 'none relevant'],
      ['8-bit network', eightBits ? `yes, by ${eightBits}` : 'no dot product of 8-bit integers'],
      ['Pixel loops', machine.simd],
    );
  }
  if (runtime) lines.push(['ONNX Runtime', `${runtime.version || 'not opened'}, ${runtime.file}`]);
  if (network) {
    const { precision, because, operators } = network;
    const who = operatorsText({ precision, because, ...(operators !== null && { operators }) });
    lines.push(
      ['Network', `${network.name} on ${network.device}`],
      ['Precision', `${network.precision} (${network.because})`],
      ...(who ? [['Operators', who] satisfies [string, string]] : []),
    );
  }
  if (second)
    lines.push(['Second network', `${second.name}${second.state === 'ok' ? '' : ` (${second.state})`}`]);
  if (network && network.device !== 'cpu') {
    for (const { id, name, computeCapability, memoryBytes, driver, cuda, tensorrt } of report.gpus) {
      lines.push([
        'GPU',
        `${id}: ${name}, compute capability ${computeCapability}, ${megabytes(memoryBytes)}, driver ${driver}, CUDA ${cuda}${tensorrt ? `, TensorRT ${tensorrt}` : ''}`,
      ]);
    }
    lines.push(['', NOT_RUN]);
  }
  lines.push(['Threads', describeThreads(report.threads)]);
  const parts = [table(lines)];
  if (measured.length > 0) {
    parts.push(
      table([
        ['', 'PRECISION', 'OPERATORS', 'FILE', 'OPEN', 'FIRST RUN', 'RUN', 'MEMORY'],
        ...measured.map((each) => [
          each.used ? '*' : ' ',
          each.precision,
          each.operators ? `Cutout's, ${each.operators}` : "ONNX Runtime's",
          megabytes(each.bytes),
          ms(each.openMs),
          ms(each.firstRunMs),
          ms(each.runMs),
          megabytes(each.memoryBytes),
        ]),
      ]),
      `* in use. Median of ${RUNS} runs.\n`,
    );
  }
  const marks = { ok: ' ', note: '!', problem: '✗' };
  parts.push(
    table(
      report.install.map(({ about, state, said, todo }) => [
        marks[state],
        about,
        state === 'note' && todo ? `${said} → ${todo}` : said,
      ]),
    ),
  );
  for (const warning of report.warnings) parts.push(`Note: ${warning}\n`);
  for (const problem of report.problems) parts.push(`Problem: ${problem}\n`);
  if (report.problems.length === 0) parts.push('Ready to serve.\n');
  return parts.join('\n');
}

/**
 * `cutout doctor`: reports what this machine can do, how fast it runs the network in every number format, and
 * the state of the installation. Resolves with whether a server could work; errors are part of the report,
 * not thrown.
 */
export async function doctor(
  config: Config,
  { json, measure }: DoctorOptions,
  dependencies: DoctorDependencies,
): Promise<boolean> {
  const report = await new Doctor(config, dependencies).examine(measure);
  dependencies.out.write(json ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report));
  return report.problems.length === 0;
}
