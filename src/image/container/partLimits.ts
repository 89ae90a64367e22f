import { cannotRead, type ImageError } from '../errors.ts';

/**
 * Error for a file with too many parts that a decoder processes one by one: it stores a record of each, or
 * warns of each, at many times the cost of the few bytes that a part takes in the file (decision 0210).
 */
export const tooManyParts = (parts: string, max: number): ImageError =>
  cannotRead(`The file has more than ${max} ${parts}. Save the image again without its metadata.`);

/** Error for a file whose few bytes would keep a decoder busy for longer than its pixels explain. */
export const tooMuchWork = (what: string): ImageError =>
  cannotRead(`${what} Save the image again with another program.`);

/** Bytes that are scanned before the event loop gets a turn. */
export const scannedBytesPerTurn = 4 * 1024 * 1024;
