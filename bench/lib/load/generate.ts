import { setTimeout as sleep } from 'node:timers/promises';

/** One request of a run; all times in milliseconds since the run began. */
export interface Sample {
  /** Scheduled time. In a closed loop, when the previous one was answered. */
  readonly due: number;
  readonly sent: number;
  /** When the answer arrived, or was given up. */
  readonly done: number;
  /** `ok`, the code of a refusal or error, or `unfinished`: no answer when the run ended. */
  readonly code: string;
}

/** Sends one request and resolves to its code; never rejects. */
export type Send = () => Promise<string>;

export interface OpenPlan {
  readonly perSecond: number;
  readonly seconds: number;
  /** `even`: equal intervals. `random`: exponential intervals (Poisson arrivals), as from independent callers. */
  readonly arrivals: 'even' | 'random';
  /** How long to wait for answers after the last request was due. */
  readonly drainSeconds: number;
}

/** Deterministic numbers in [0, 1): the same arrivals in every run. */
function uniform(): () => number {
  let state = 0x2545f491;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Scheduled times of requests: `perSecond * seconds` of them, rounded, at least one, all within the run. */
export function dueTimes({ perSecond, seconds, arrivals }: OpenPlan): readonly number[] {
  const count = Math.max(1, Math.round(perSecond * seconds));
  if (arrivals === 'even') return Array.from({ length: count }, (_, i) => (i * 1000) / perSecond);
  // Arrival times of a Poisson process, given how many there are, are uniform and sorted.
  const next = uniform();
  return Array.from({ length: count }, () => next() * seconds * 1000).sort((a, b) => a - b);
}

/**
 * Open loop: requests are sent when they are due, whatever happened to earlier ones, with unlimited concurrency.
 * Latency counts from `due`, not from `sent`: a stall of the server, or of this generator, affects every request
 * that was due during it (no coordinated omission).
 */
export async function openLoop(plan: OpenPlan, send: Send): Promise<readonly Sample[]> {
  const begin = performance.now();
  const now = () => performance.now() - begin;
  const samples: Sample[] = [];
  const waiting = new Map<number, { readonly due: number; readonly sent: number }>();
  const running = new Set<Promise<void>>();
  for (const [id, due] of dueTimes(plan).entries()) {
    const early = due - now();
    if (early > 0) await sleep(early);
    const sent = now();
    waiting.set(id, { due, sent });
    const one = send().then((code) => {
      if (waiting.delete(id)) samples.push({ due, sent, done: now(), code });
      running.delete(one);
    });
    running.add(one);
  }
  const end = new AbortController();
  await Promise.race([
    Promise.all(running),
    sleep(Math.max(0, (plan.seconds + plan.drainSeconds) * 1000 - now()), undefined, {
      signal: end.signal,
    }).catch(() => undefined),
  ]);
  end.abort();
  for (const { due, sent } of waiting.values()) samples.push({ due, sent, done: now(), code: 'unfinished' });
  waiting.clear();
  return samples;
}

/** Closed loop: that many callers, each of which sends its next request when it has the answer to the last. */
export async function closedLoop(
  { parallel, seconds }: { readonly parallel: number; readonly seconds: number },
  send: Send,
): Promise<readonly Sample[]> {
  const begin = performance.now();
  const now = () => performance.now() - begin;
  const samples: Sample[] = [];
  const caller = async () => {
    while (now() < seconds * 1000) {
      const sent = now();
      const code = await send();
      samples.push({ due: sent, sent, done: now(), code });
    }
  };
  await Promise.all(Array.from({ length: parallel }, caller));
  return samples;
}
