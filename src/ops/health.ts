/** `draining`: works normally, and tells load balancers to send new requests elsewhere. */
type Phase = 'starting' | 'ready' | 'draining' | 'stopping';

/** Life cycle of the process; moves forward only. */
export interface Health {
  readonly phase: Phase;
  /** The network is warmed up. Ignored once stopping. */
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
