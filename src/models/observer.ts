import type { OpeningStep } from '../engine/types.ts';

export type Phase = 'wait' | 'download' | 'copy' | 'unpack' | 'prepare' | 'measure' | 'open';

export interface Progress {
  readonly phase: Phase;
  /** Name of the network: a start may fetch several at a time. */
  readonly network?: string;
  /** Bytes done, and in all; absent where unknown. */
  readonly bytes?: number;
  readonly total?: number;
  /** Of the phase `open`. */
  readonly step?: OpeningStep;
}

/** Receives the progress of a pull: the command line draws a bar, the server writes log lines. */
export interface Observer {
  /** Tells a sentence the operator should read, for example about a licence. */
  notice(text: string): void;
  progress(progress: Progress): void;
}
