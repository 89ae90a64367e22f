import { stat } from 'node:fs/promises';
import { precisionOfForm } from '../../compiler/form.ts';
import type { EngineConfig } from '../../config/engine.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Gpu, NativeModule } from '../../engine/types.ts';
import { ensureNetwork } from '../../models/ensure.ts';
import { gpuSpecOf, preparedFacts } from '../../models/locate.ts';
import type { Manifest } from '../../models/manifest.ts';
import { rememberRun } from '../../models/measured.ts';
import type { Observer } from '../../models/observer.ts';
import { formFor, type PrecisionChoice, precisionChoices, questionOf } from '../../models/precision.ts';
import { startEngine } from '../../server/openEngine.ts';
import { type Output, progressOn, withProgress } from '../modelsProgress.ts';
import { type Measured, runCount } from './report.ts';

/** What an engine is opened with. */
export interface Bench {
  readonly native: NativeModule;
  readonly config: EngineConfig;
  readonly catalogueDir: string | undefined;
  /** Receives the progress. */
  readonly err: Output;
  /** Receives the GPUs that were opened. */
  readonly onGpus: (gpus: readonly Gpu[]) => void;
}

const openEngine = ({ native, config }: Bench, observer: Observer): Promise<Engine> =>
  startEngine(native, { ...config, batchMax: 1 }, observer);

/** Opens the device alone. Rejects with EngineError if it cannot be used. */
export async function findGpus(bench: Bench): Promise<void> {
  await withProgress(bench.err, bench.config.model, async (observer) => {
    const engine = await openEngine(bench, observer);
    bench.onGpus(engine.gpus());
    await engine.close(0);
  });
}

/** The one in use first, so that its errors are reported even if another fails; those in 8 bits by a table or bf16 that `auto` chooses from; floats. */
export function trialsOf(
  { native, config }: Bench,
  manifest: Manifest,
  used: PrecisionChoice,
): PrecisionChoice[] {
  const auto = { ...config, precision: 'auto', operators: 'auto' } as const;
  const others = precisionChoices(manifest, questionOf(auto, native.versions())).filter(
    ({ precision }) => precision !== 'int8' || manifest.int8 !== undefined,
  );
  const floats = { precision: 'fp32', because: 'floats' } as const;
  const trials = [used, ...others, ...(config.device === 'cpu' ? [floats] : [])];
  const forms = trials.map(formFor);
  return trials.filter((trial, at) => forms.indexOf(formFor(trial)) === at);
}

/** Milliseconds of the median run on a white image. */
async function medianRun(engine: Engine, network: string): Promise<number> {
  const size = { width: 64, height: 64 };
  const runs: number[] = [];
  for (let run = 0; run < runCount; run++) {
    const data = new Uint8Array(size.width * size.height * 4).fill(255);
    runs.push((await engine.matte({ data, ...size }, { network, hiddenColour: 'clear', ...size })).inferMs);
  }
  return runs.sort((a, b) => a - b)[runCount >> 1] ?? Number.NaN;
}

/** Prepares (if necessary), opens and runs one form. Rejects with ModelError or EngineError. */
export async function measure(
  bench: Bench,
  manifest: Manifest,
  choice: PrecisionChoice,
  used: boolean,
): Promise<Measured> {
  const { config, catalogueDir, err } = bench;
  const form = formFor(choice);
  const { modelsDir, device } = config;
  const observer = progressOn(err, manifest.name);
  const place = { modelsDir, device, form, ...(catalogueDir !== undefined && { catalogueDir }) };
  const found = await ensureNetwork(manifest.name, { ...place, pull: false, observer }).finally(() =>
    observer.done(),
  );
  const facts = await preparedFacts(manifest.name, place);
  const operators = facts.operators ? choice.operators : undefined;
  const network = {
    ...(device === 'cpu' ? found : gpuSpecOf(found, facts)),
    ...(operators !== undefined && { operators }),
  };
  const before = process.memoryUsage.rss();
  const engine = await openEngine(bench, observer);
  try {
    bench.onGpus(engine.gpus());
    const { loadMs, warmUpMs } = await engine.load(network);
    const runMs = await medianRun(engine, network.name);
    if (used) await rememberRun(modelsDir, manifest, { device, file: network.path, runMs });
    return {
      precision: facts.precision ?? precisionOfForm(form),
      operators: operators ?? (network.gpuProgram ? device : null),
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
