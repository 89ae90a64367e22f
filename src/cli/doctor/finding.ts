/** Result of one check and what to do about it. */
export interface Finding {
  readonly about: 'ledger' | 'redis' | 'clock' | 'disk' | 'limits' | 'memory' | 'server' | 'exposure';
  /** `note`: works, but could be improved. `problem`: does not work, or will soon fail. */
  readonly state: 'ok' | 'note' | 'problem';
  /** A sentence. Never contains a password. */
  readonly said: string;
  /** A sentence; absent if there is nothing to do. */
  readonly todo?: string;
}

const finding =
  (state: Finding['state']) =>
  (about: Finding['about'], said: string, todo?: string): Finding => ({
    about,
    state,
    said,
    ...(todo !== undefined && { todo }),
  });

export const ok: (about: Finding['about'], said: string) => Finding = finding('ok');
export const note = finding('note');
export const problem = finding('problem');

/** A note unless it is fine. */
export const judged = (isFine: boolean, about: Finding['about'], said: string, todo: string): Finding =>
  isFine ? ok(about, said) : note(about, said, todo);
