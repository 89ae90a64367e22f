import { UserError } from '../errors.ts';

export type StoreCode =
  | 'STORE_OPEN'
  | 'STORE_IN_USE'
  | 'STORE_NEWER'
  /** The shared database or Redis cannot be reached now; nothing was decided. */
  | 'STORE_UNAVAILABLE'
  | 'STORE_NOT_EMPTY'
  | 'STORE_FILE'
  | 'STORE_CHANGED'
  | 'STORE_UNKNOWN_ACCOUNT'
  | 'STORE_UNKNOWN_KEY'
  | 'STORE_UNKNOWN_RESERVATION'
  | 'STORE_NOT_CHARGED'
  | 'STORE_BALANCE'
  | 'STORE_KEYS'
  | 'STORE_CONTRADICTION'
  | 'STORE_REFERENCE_REUSED';

/** The message is one sentence for the operator; it never contains key material. */
export class StoreError extends UserError {
  readonly code: StoreCode;

  constructor(code: StoreCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Cause of a STORE_UNAVAILABLE after which it is unknown whether the transaction was committed. */
export class InDoubt extends Error {
  override readonly name = 'InDoubt';
}

export const isUnavailable = (error: unknown): error is StoreError =>
  error instanceof StoreError && error.code === 'STORE_UNAVAILABLE';

export const unknownAccount = (id: string) =>
  new StoreError('STORE_UNKNOWN_ACCOUNT', `There is no account ${id}.`);
