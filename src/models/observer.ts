export type Phase = 'wait' | 'download' | 'unpack' | 'prepare';

export interface Progress {
  readonly phase: Phase;
  /** Done and in all; absent where they cannot be known. */
  readonly bytes?: number;
  readonly total?: number;
}

/** Who wants to know how a pull goes: the command line draws a bar, the server writes log lines. */
export interface Observer {
  /** A sentence the operator should read, licences above all. */
  notice(text: string): void;
  progress(progress: Progress): void;
}
