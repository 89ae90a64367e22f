type ModelErrorCode =
  | 'model_unknown'
  | 'model_missing'
  | 'model_damaged'
  | 'model_checksum'
  | 'model_source'
  | 'model_unsupported';

/** A network is missing, damaged or unusable. The message is a complete sentence for the operator. */
export class ModelError extends Error {
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ModelError';
    this.code = code;
  }
}
