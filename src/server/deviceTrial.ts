import type { Pixels } from '../engine/types.ts';
import { abortedByStop } from '../ops/stopSignals.ts';
import type { DeviceTask, TrialMessage } from './deviceQuestion.ts';
import { drawnPixels } from './measurePrecision.ts';
import { type OpenedEngine, openEngine } from './openEngine.ts';

/** Started by chooseDevice.ts as a process of its own: measures the device of its settings, says what came of it, and ends. */

/** Milliseconds of the measurement. */
const measuredMs = 2000;

const say = (message: TrialMessage) =>
  new Promise<void>((resolve) => process.send?.(message, undefined, undefined, () => resolve()));

/** Images a second of an engine, with as many in progress as it takes at a time, after one warm-up image for each of them. */
async function imagesPerSecond({ engine, network, threads }: OpenedEngine, signal: AbortSignal) {
  const drawn = await (await drawnPixels())();
  const { width, height } = drawn;
  const plan = { network: network.name, hiddenColour: 'clear', width, height } as const;
  const image = (): Pixels => ({ ...drawn, data: drawn.data.slice() });
  const lane = async (until: number) => {
    let done = 0;
    do {
      await engine.matte(image(), plan, { signal });
      done++;
    } while (performance.now() < until);
    return done;
  };
  const run = async (ms: number) => {
    const since = performance.now();
    const lanes = Array.from({ length: threads.workers }, () => lane(since + ms));
    const images = (await Promise.all(lanes)).reduce((sum, each) => sum + each, 0);
    return images / ((performance.now() - since) / 1000);
  };
  await run(0);
  return run(measuredMs);
}

async function measure({ config, pull, memory }: DeviceTask): Promise<void> {
  const { signal } = abortedByStop();
  const observer = {
    notice: (notice: string) => void say({ notice }),
    progress: (progress: TrialMessage['progress']) => void say({ ...(progress && { progress }) }),
  };
  try {
    const opened = await openEngine(config, { pull, memory, observer, signal });
    await say({ imagesPerSecond: await imagesPerSecond(opened, signal) });
    await opened.engine.close(0);
  } catch (error) {
    await say({ failure: error instanceof Error ? error.message : String(error) });
  }
  process.exit();
}

// The process does not outlive the one that started it.
process.once('disconnect', () => process.exit(1));
process.once('message', (task: DeviceTask) => void measure(task));
