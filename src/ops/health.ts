/** `draining`: works as ever, and tells balancers to send what is new elsewhere. */
export type Phase = 'starting' | 'ready' | 'draining' | 'stopping';

/** Where the process stands in its life; moves forward only. */
export interface Health {
  readonly phase: Phase;
  /** The network is warm. Ignored once stopping. */
  ready(): void;
  /** Ignored unless ready. */
  draining(): void;
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
    draining() {
      if (phase === 'ready') phase = 'draining';
    },
    stopping() {
      phase = 'stopping';
    },
  };
}
