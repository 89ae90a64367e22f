/** What was looked at, how it is, and what to do where it is not as it should be. */
export interface Finding {
  readonly about: 'books' | 'redis' | 'clock' | 'disk' | 'limits' | 'memory' | 'server' | 'exposure';
  /** `note`: works, and could be better. `problem`: it does not work, or will not for long. */
  readonly state: 'ok' | 'note' | 'problem';
  /** A sentence. Never holds a password. */
  readonly said: string;
  /** A sentence; absent where nothing is to do. */
  readonly todo?: string;
}

export const ok = (about: Finding['about'], said: string): Finding => ({ about, state: 'ok', said });
export const note = (about: Finding['about'], said: string, todo: string): Finding => ({
  about,
  state: 'note',
  said,
  todo,
});
export const problem = (about: Finding['about'], said: string, todo: string): Finding => ({
  about,
  state: 'problem',
  said,
  todo,
});

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
