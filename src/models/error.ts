type ModelErrorCode =
  | 'model_unknown'
  | 'model_missing'
  | 'model_damaged'
  | 'model_checksum'
  | 'model_source'
  /** Its files cannot be written: the disk is full, for example. */
  | 'model_unwritable'
  | 'model_unsupported'
  /** Of an added file (add.ts): longer or with more parts than is read. */
  | 'model_too_large'
  /** Of an added file: it names other files. */
  | 'model_external_data'
  /** Of an added file: it does not say something that the operator must then say. */
  | 'model_undecided'
  /** Of an added file: what it gives for an image is no matte. */
  | 'model_check'
  /** There is a network of that name already. */
  | 'model_exists';

/** A network is missing, damaged or unusable. The message is a complete sentence for the operator. */
export class ModelError extends Error {
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ModelError';
    this.code = code;
  }
}
