import { ImageError } from '../errors.ts';

/**
 * Error for a file with too many parts that a decoder processes one by one: it stores a record of each, or
 * warns of each, at many times the cost of the few bytes that a part takes in the file (decision 0210).
 */
export function tooManyParts(parts: string, max: number): ImageError {
  return new ImageError(
    'failed_to_read_image',
    `The file has more than ${max} ${parts}. Save the image again without its metadata.`,
  );
}

/** Error for a file whose few bytes would keep a decoder busy for longer than its pixels explain. */
export const tooMuchWork = (what: string): ImageError =>
  new ImageError('failed_to_read_image', `${what} Save the image again with another program.`);

/** Bytes that are scanned before the event loop gets a turn. */
export const scannedBytesPerTurn = 4 * 1024 * 1024;
