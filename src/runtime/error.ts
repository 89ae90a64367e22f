type RuntimeErrorCode =
  | 'runtime_platform'
  | 'runtime_unavailable'
  | 'runtime_pip'
  | 'runtime_space'
  | 'runtime_network'
  | 'runtime_digest'
  | 'runtime_damaged';

/** A GPU runtime cannot be installed or used. The message is a complete sentence for the operator. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
  readonly code: RuntimeErrorCode;

  constructor(code: RuntimeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
