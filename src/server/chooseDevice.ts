import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EngineConfig } from '../config/engine.ts';
import { writeAtomically } from '../files.ts';
import { makeFolder } from '../folder.ts';
import { UNFINISHED } from '../models/layout.ts';
import { withLock } from '../models/lock.ts';
import {
  aloneOn,
  type DeviceChoice,
  type DeviceQuestion,
  type DeviceTask,
  decided,
  deviceQuestion,
  keptChoice,
  type TrialMessage,
} from './deviceQuestion.ts';
import type { OpenOptions } from './openNetwork.ts';

/** The program of a process that measures, and the seconds that it may take: the CPU's forms are measured within them, and TensorRT builds engines. */
const usualTrials = {
  program: fileURLToPath(new URL('./deviceTrial.js', import.meta.url)),
  limits: { cpu: 600, cuda: 120, tensorrt: 600, webgpu: 120 },
};

/** Milliseconds until SIGKILL: after SIGTERM, and after the answer, in which TensorRT stores its kernels. */
const stopMs = 2000;
const closeMs = 10_000;

/** The process was ended from outside, so the device may still work. */
class KilledError extends Error {}

/**
 * Has a process measure a device, because it can open one library of ONNX Runtime only, and a provider may crash or hang. Resolves with
 * images a second when the process has ended; rejects with the reason of `signal`, or with what is wrong with the device.
 */
async function trial(
  task: DeviceTask,
  program: string,
  seconds: number,
  { observer, signal }: Pick<OpenOptions, 'observer' | 'signal'>,
): Promise<number> {
  signal.throwIfAborted();
  const child = fork(program, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  let rate: number | undefined;
  let failure: string | undefined;
  let killing: NodeJS.Timeout | undefined;
  const killIn = (ms: number) => {
    clearTimeout(killing);
    killing = setTimeout(() => child.kill('SIGKILL'), ms);
  };
  const stop = () => {
    child.kill('SIGTERM');
    killIn(stopMs);
  };
  const limit = setTimeout(() => {
    failure ??= `it took longer than ${seconds} s`;
    stop();
  }, seconds * 1000);
  signal.addEventListener('abort', stop, { once: true });
  child.on('message', (message: TrialMessage) => {
    const { notice, progress } = message;
    if (notice !== undefined) observer.notice(`${task.config.device}: ${notice}`);
    if (progress) observer.progress(progress);
    // A network that is being fetched is no slow device.
    if (progress?.bytes !== undefined) limit.refresh();
    const { imagesPerSecond, failure: fault } = message;
    if (imagesPerSecond === undefined && fault === undefined) return;
    // One that was told to end has less time.
    if (failure === undefined && !signal.aborted) killIn(closeMs);
    clearTimeout(limit);
    rate ??= imagesPerSecond;
    failure ??= fault;
  });
  try {
    // What ended before it was told anything is seen by its exit.
    child.send(task, () => {});
    const [code, killed] = await once(child, 'close');
    signal.throwIfAborted();
    if (rate !== undefined && failure === undefined) return rate;
    // Something else ended it, as where memory is short: that says nothing of the device.
    if (failure === undefined && killed === 'SIGKILL') throw new KilledError('its process was killed');
    throw new Error(failure ?? `its process ended with ${killed ?? code}`);
  } finally {
    clearTimeout(limit);
    clearTimeout(killing);
    signal.removeEventListener('abort', stop);
  }
}

/**
 * Measures the devices one after the other; those that fail are left out, and of equal ones the first is taken. The choice lasts
 * unless a process was killed from outside.
 */
async function fastest(
  config: EngineConfig,
  candidates: DeviceQuestion['candidates'],
  start: OpenOptions,
  { program, limits }: typeof usualTrials,
): Promise<{ readonly chosen: DeviceChoice; readonly lasts: boolean } | undefined> {
  const { pull, memory = 'auto', observer, signal } = start;
  const rates: (readonly [EngineConfig['device'], number])[] = [];
  const leftOut: string[] = [];
  let lasts = true;
  observer.notice(`Measuring which device is the fastest: ${candidates.join(', ')}.`);
  for (const [at, measured] of candidates.entries()) {
    const since = performance.now();
    const step = { network: config.model, measured, batch: 1, step: at + 1, steps: candidates.length };
    start.onOpening?.(() => [{ ...step, seconds: (performance.now() - since) / 1000 }]);
    try {
      // The trial of cpu has fetched the network.
      const task = { config: aloneOn(config, measured), pull: pull && measured === 'cpu', memory };
      const rate = await trial(task, program, limits[measured], { observer, signal });
      // Compared as displayed, with three digits, so that the log explains the choice.
      rates.push([measured, Number(rate.toPrecision(3))]);
    } catch (error) {
      signal.throwIfAborted();
      leftOut.push(measured);
      lasts &&= !(error instanceof KilledError);
      observer.notice(
        `The device ${measured} is left out: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
  const [best] = rates.toSorted(([, a], [, b]) => b - a);
  if (!best) return undefined;
  const figures = rates.map(([device, rate]) => `${device} ${rate}`).join(', ');
  const without = leftOut.length > 0 ? `; ${leftOut.join(', ')} failed` : '';
  const because = `measured with ${config.model}: ${figures} images/s${without}`;
  return { chosen: { device: best[0], because }, lasts };
}

/**
 * Measures the devices, each in a process of its own, and keeps the choice. Of starts at the same time one measures and the others wait;
 * where nothing can be kept each measures. `again`: also where a choice is kept. Where none could be measured cpu is taken, whose opening says why. Rejects with the reason of
 * `signal`.
 */
export async function measureDevices(
  config: EngineConfig,
  question: DeviceQuestion,
  start: OpenOptions,
  again = false,
  trials = usualTrials,
): Promise<DeviceChoice> {
  const { candidates, key, file } = question;
  const { observer, signal } = start;
  const none = { device: 'cpu', because: `none of ${candidates.join(', ')} could be measured` } as const;
  let begun = false;
  const measure = async () => {
    begun = true;
    const kept = again ? undefined : await keptChoice(question);
    if (kept) return kept;
    const found = await fastest(config, candidates, start, trials);
    if (!found) return none;
    const { chosen, lasts } = found;
    if (!lasts) {
      observer.notice('A process was killed while it measured, so the next start measures again.');
      return chosen;
    }
    const content = `${JSON.stringify({ key, ...chosen })}\n`;
    await writeAtomically(file, content, 'replace', { prefix: UNFINISHED }).catch(() => unkept());
    return chosen;
  };
  const folder = path.dirname(file);
  const unkept = () => observer.notice(`${folder} cannot be written, so every start measures the devices.`);
  const onWait = () => observer.notice('Waiting for another process that measures the devices.');
  try {
    makeFolder('models folder', folder);
    return await withLock(path.join(folder, '.device.lock'), measure, { signal, onWait });
  } catch (error) {
    if (begun || signal.aborted) throw error;
    return measure();
  }
}

/**
 * The settings with the device that CUTOUT_DEVICE=auto stands for: the one that was kept, else or with `again` the fastest as it is
 * measured now, which is then kept. Rejects with the reason of `signal`, or as `openEngine` does.
 */
export async function chooseDevice(
  config: EngineConfig,
  start: OpenOptions,
  again = false,
): Promise<EngineConfig> {
  if (!config.auto) return config;
  const question = await deviceQuestion(config);
  const measures = again && question.candidates.length > 1;
  const known = measures ? undefined : await keptChoice(question);
  return decided(config, known ?? (await measureDevices(config, question, start, again)));
}

/** Deletes the kept choice; returns what follows from that, as the end of a sentence. */
export async function forgetChoice(config: EngineConfig): Promise<string> {
  const { file } = await deviceQuestion(config);
  return rm(file, { force: true }).then(
    () => 'the next start measures again',
    () => `the choice in ${file} cannot be deleted: delete it, or set CUTOUT_DEVICE`,
  );
}
