export type Phase = 'starting' | 'ready' | 'stopping';

/** Where the process stands in its life; moves forward only. */
export interface Health {
  readonly phase: Phase;
  /** The network is warm. Ignored once stopping. */
  ready(): void;
  stopping(): void;
}

export function createHealth(): Health {
  let phase: Phase = 'starting';
  return {
    get phase() {
      return phase;
    },
    ready() {
      if (phase === 'starting') phase = 'ready';
    },
    stopping() {
      phase = 'stopping';
    },
  };
}
