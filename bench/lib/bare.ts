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

/** Bare ONNX Runtime: `processes` × `threads` concurrently for `seconds`. */
export async function bareRuns(
  network: string,
  { processes, threads, seconds }: BareSetting & { readonly seconds: number },
): Promise<BareRuns> {
  const runs = await Promise.all(
    Array.from({ length: processes }, async () => {
      const [times] = await jsonLines(childScript('bareRun.js'), [network, threads, seconds]);
      return times as readonly number[];
    }),
  );
  return { times: runs.flat(), perSecond: sum(runs.map((times) => 1000 / mean(times))) };
}
