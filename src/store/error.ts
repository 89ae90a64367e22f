export type StoreCode =
  | 'STORE_OPEN'
  | 'STORE_IN_USE'
  | 'STORE_NEWER'
  | 'STORE_CHANGED'
  | 'STORE_DAMAGED'
  | 'STORE_UNKNOWN_ACCOUNT'
  | 'STORE_UNKNOWN_RESERVATION'
  | 'STORE_REFERENCE_REUSED';

/** The message is one sentence for the operator; it never holds key material. */
export class StoreError extends Error {
  readonly code: StoreCode;

  constructor(code: StoreCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.code = code;
  }
}
