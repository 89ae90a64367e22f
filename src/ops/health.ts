/** `draining`: works normally, and tells load balancers to send new requests elsewhere. */
type Phase = 'starting' | 'ready' | 'draining' | 'stopping';

/** Life cycle of the process; moves forward only. */
export class Health {
  #phase: Phase = 'starting';

  get phase(): Phase {
    return this.#phase;
  }

  /** The network is warmed up. Ignored once stopping. */
  ready(): void {
    if (this.#phase === 'starting') this.#phase = 'ready';
  }

  /** Ignored unless ready. */
  draining(): void {
    if (this.#phase === 'ready') this.#phase = 'draining';
  }

  stopping(): void {
    this.#phase = 'stopping';
  }
}
