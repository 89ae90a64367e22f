import { existsSync } from 'node:fs';
import os from 'node:os';
import type { EngineConfig } from '../../config/engine.ts';
import type { Config } from '../../config/readConfig.ts';
import { loadAddon } from '../../engine/addon.ts';
import { availableCores } from '../../engine/threads.ts';
import type { Gpu, NativeModule } from '../../engine/types.ts';
import { type CatalogueEntry, catalogueWith, findNetwork } from '../../models/catalogue.ts';
import { networkFiles } from '../../models/layout.ts';
import { findFor, secondModelOf } from '../../models/locate.ts';
import { type PrecisionChoice, refusedText } from '../../models/precision.ts';
import { type SourceState, verifySource } from '../../models/verify.ts';
import { abortedByStop } from '../../ops/stopSignals.ts';
import { chooseDevice } from '../../server/chooseDevice.ts';
import { knownDevice } from '../../server/deviceQuestion.ts';
import { commit, version } from '../../server/installation.ts';
import { choiceOf, librariesOf, threadsOf } from '../../server/openEngine.ts';
import { type Output, withProgress } from '../modelsProgress.ts';
import { isForPeople } from '../output.ts';
import type { Finding } from './finding.ts';
import { type Bench, findGpus, measure, trialsOf } from './measure.ts';
import { describe, type Measured, nameOf, type Report } from './report.ts';
import { checkDisk, checkLimits } from './resources.ts';
import { checkExposure, checkServer } from './server.ts';
import { checkDatabase, checkRedis } from './stores.ts';

interface DoctorDependencies {
  readonly out: NodeJS.WritableStream;
  /** Progress only. */
  readonly err: Output;
  readonly catalogueDir?: string;
  readonly load?: () => NativeModule;
}

type Versions = ReturnType<NativeModule['versions']>;

/** Checks the environment of a server with these settings, whether or not one is running. Changes nothing. */
async function checkInstall(config: Config): Promise<Finding[]> {
  const [database, redis, server] = await Promise.all([
    checkDatabase(config.store),
    checkRedis(config.redis.url),
    checkServer(config.http),
  ]);
  const here = [...checkDisk(config), ...checkLimits(config), ...checkExposure(config)];
  return [...server, ...database, ...redis, ...here];
}

const machineOf = (versions: Versions): Report['machine'] => ({
  system: `${os.type()} ${os.release()} ${os.arch()}`,
  processor: os.cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableCores(),
  memoryBytes: os.totalmem(),
  instructionSets: versions.instructionSets,
  simd: versions.simd,
});

class Doctor {
  #config: Config;
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

  /** The settings with their device: where that is left to Cutout the known one, or, with `measures`, as it is measured now. */
  async #withDevice(measures: boolean): Promise<EngineConfig> {
    const { engine: config, limits } = this.#config;
    if (!measures || !config.auto) return knownDevice(config);
    const { signal, release } = abortedByStop();
    const measured = await this.#try(() =>
      withProgress(this.#dependencies.err, config.model, (observer) =>
        chooseDevice(config, { pull: false, memory: limits.memory, observer, signal }, true),
      ),
    ).finally(release);
    signal.throwIfAborted();
    return measured ?? knownDevice(config);
  }

  async examine(measures: boolean): Promise<Report> {
    const config = await this.#withDevice(measures);
    this.#config = { ...this.#config, engine: config };
    const native = await this.#try(() => (this.#dependencies.load ?? loadAddon)());
    const libraries = await this.#try(() => librariesOf(config));
    const runtimeFile = libraries?.runtimePath;
    const hasRuntime = runtimeFile !== undefined && existsSync(runtimeFile);
    if (runtimeFile !== undefined && !hasRuntime)
      this.problems.push(`The ONNX Runtime library '${runtimeFile}' does not exist.`);
    const versions = native?.versions();
    const entry = await this.#try(() =>
      findNetwork(catalogueWith(config.modelsDir, this.#dependencies.catalogueDir), config.model),
    );
    const choice = entry && versions && (await this.#choose(entry, versions));
    const refused = versions && refusedText(versions);
    if (refused !== undefined) this.warnings.push(refused);
    const bench = native && libraries && this.#bench(native);
    const measured = bench && entry && choice ? await this.#measure(bench, entry, choice, measures) : [];
    const inUse = measured.find(({ used }) => used);
    if (bench && hasRuntime && !measures && config.device !== 'cpu') await this.#try(() => findGpus(bench));
    const second = entry && (await this.#try(() => this.#lookForSecond()));
    const install = await checkInstall(this.#config);
    for (const { state, said, todo } of install)
      if (state === 'problem') this.problems.push(`${said} ${todo ?? ''}`.trim());
    return {
      cutout: version(),
      commit: commit() ?? null,
      node: process.version,
      machine: versions ? machineOf(versions) : null,
      // Known once an engine has opened the library.
      runtime:
        runtimeFile === undefined
          ? null
          : { file: runtimeFile, version: native?.versions().onnxruntime ?? '' },
      network: choice
        ? {
            name: config.model,
            device: config.device,
            ...(config.deviceBecause !== undefined && { deviceBecause: config.deviceBecause }),
            precision: inUse?.precision ?? choice.precision,
            operators: inUse ? inUse.operators : (choice.operators ?? null),
            because: choice.because,
          }
        : null,
      second: second ?? null,
      gpus: this.#gpus,
      threads: threadsOf(config),
      measured,
      install,
      warnings: this.warnings,
      // Finding the network fails twice where the device is looked for too.
      problems: [...new Set(this.problems)],
    };
  }

  #bench(native: NativeModule): Bench {
    const { catalogueDir, err } = this.#dependencies;
    const onGpus = (gpus: readonly Gpu[]) => {
      this.#gpus = gpus;
    };
    return { native, config: this.#config.engine, catalogueDir, err, onGpus };
  }

  /** The choice that was measured, or else what a start without measurement would take. */
  #choose({ manifest }: CatalogueEntry, versions: Versions): Promise<PrecisionChoice | undefined> {
    return this.#try(async () => {
      const { engine, limits } = this.#config;
      const { choices, kept } = choiceOf(manifest, engine, versions, limits.memory);
      return (await kept.read()) ?? choices[0];
    });
  }

  /** The state of a network's published file, and a sentence, without its end, on one that is not as it should be. */
  async #stateOf(what: string, { manifest }: CatalogueEntry): Promise<{ state: SourceState; fault: string }> {
    const { modelsDir } = this.#config.engine;
    const { name } = manifest;
    const state = await verifySource(networkFiles(modelsDir, manifest), manifest);
    const is = state === 'missing' ? `is not in ${modelsDir}` : 'is damaged';
    return { state, fault: `${what} ${name} ${is}. Run \`cutout models pull ${name}\`` };
  }

  /** The second network; undefined: none. Reports one that is missing or damaged. */
  async #lookForSecond(): Promise<Report['second'] | undefined> {
    const { engine } = this.#config;
    const place = { ...engine, catalogueDir: this.#dependencies.catalogueDir };
    const name = await secondModelOf(place);
    if (name === undefined) return undefined;
    const { state, fault } = await this.#stateOf('The second network', await findFor(name, place));
    if (engine.secondModel === 'auto' && state === 'missing')
      this.warnings.push(`${fault}, or ${engine.model} runs alone.`);
    else if (state !== 'ok') this.problems.push(`${fault}.`);
    return { name, state };
  }

  /** Checks the network's file; with `measures` also prepares (if necessary) and runs it in every form of this device. */
  async #measure(
    bench: Bench,
    entry: CatalogueEntry,
    choice: PrecisionChoice,
    measures: boolean,
  ): Promise<Measured[]> {
    const { state, fault } = await this.#stateOf('The network', entry);
    if (state !== 'ok') this.problems.push(`${fault}.`);
    if (state !== 'ok' || !measures) return [];
    const results: Measured[] = [];
    for (const trial of trialsOf(bench, entry.manifest, choice)) {
      const result = await this.#try(() => measure(bench, entry.manifest, trial, trial === choice));
      // A network that Cutout's operators do not support is the same in both forms.
      if (result && !results.some((each) => nameOf(each) === nameOf(result))) results.push(result);
    }
    return results;
  }
}

/**
 * `cutout doctor`: reports what this machine can do, how fast it runs the network in every number format, and
 * the state of the installation; with `measure` it opens and runs networks. Resolves with whether a server could work; errors
 * are part of the report, not thrown.
 */
export async function doctor(
  config: Config,
  { json, measure: measures }: Readonly<Record<'json' | 'measure', boolean>>,
  dependencies: DoctorDependencies,
): Promise<boolean> {
  const report = await new Doctor(config, dependencies).examine(measures);
  dependencies.out.write(json ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report));
  return report.problems.length === 0;
}
