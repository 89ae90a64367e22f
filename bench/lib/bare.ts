import { jsonLines } from './child.ts';
import { childScript } from './paths.ts';
import { mean, sum } from './stats.ts';

export interface BareSetting {
  readonly processes: number;
  /** Of each process. */
  readonly threads: number;
}

interface BareRuns {
  /** Milliseconds of every run of every process. */
  readonly times: readonly number[];
  /** Of all processes together. */
  readonly perSecond: number;
}

/** Who runs the network: ONNX Runtime alone, or the server's engine with its operators. */
type Runner = 'onnxruntime' | 'engine';

/** Runs of the network and nothing else: `processes` × `threads` concurrently for `seconds`. */
export async function bareRuns(
  runner: Runner,
  network: string,
  { processes, threads, seconds }: BareSetting & { readonly seconds: number },
): Promise<BareRuns> {
  const script = childScript(runner === 'engine' ? 'engineRun.js' : 'bareRun.js');
  const runs = await Promise.all(
    Array.from({ length: processes }, async () => {
      const [times] = await jsonLines(script, [network, threads, seconds]);
      return times as readonly number[];
    }),
  );
  return { times: runs.flat(), perSecond: sum(runs.map((times) => 1000 / mean(times))) };
}
