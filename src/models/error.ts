type ModelErrorCode =
  | 'MODEL_UNKNOWN'
  | 'MODEL_MISSING'
  | 'MODEL_DAMAGED'
  | 'MODEL_CHECKSUM'
  | 'MODEL_SOURCE'
  /** Its files cannot be written: the disk is full, for example. */
  | 'MODEL_UNWRITABLE'
  | 'MODEL_UNSUPPORTED'
  /** Of an added file (add.ts): longer or with more parts than is read. */
  | 'MODEL_TOO_LARGE'
  /** Of an added file: it names other files. */
  | 'MODEL_EXTERNAL_DATA'
  /** Of an added file: it does not say something that the operator must then say. */
  | 'MODEL_UNDECIDED'
  /** Of an added file: what it gives for an image is no matte. */
  | 'MODEL_CHECK'
  /** It takes more memory than the process has left. */
  | 'MODEL_MEMORY'
  /** There is a network of that name already. */
  | 'MODEL_EXISTS';

/** A network is missing, damaged or unusable. The message is a complete sentence for the operator. */
export class ModelError extends Error {
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ModelError';
    this.code = code;
  }
}

/** The error for what this version, or this machine, does not do. */
export const unsupported = (message: string, cause?: unknown): ModelError =>
  new ModelError('MODEL_UNSUPPORTED', message, cause === undefined ? undefined : { cause });
