import { type AppError, fail } from '../../errors.ts';
import { MAX_FILE_BYTES } from '../../inputLimits.ts';

const mebibyte = 1024 * 1024;

/** The media types that a body may have, as `request.is` names them. */
export type BodyType = 'multipart/form-data' | 'urlencoded' | 'json';

/** Most bytes of a body of each type, and of a file and all texts in a form. */
export interface BodyLimits {
  readonly types: readonly BodyType[];
  readonly multipart: number;
  readonly json: number;
  readonly urlencoded: number;
  readonly file: number;
  readonly text: number;
  readonly tooLarge: () => AppError;
}

const everyType: readonly BodyType[] = ['multipart/form-data', 'urlencoded', 'json'];

/** docs/contract.md section 3. A legal file in base64 and percent-encoding fits. */
export const IMAGES: BodyLimits = {
  types: everyType,
  multipart: 66 * mebibyte,
  json: 32 * mebibyte,
  urlencoded: 48 * mebibyte,
  file: MAX_FILE_BYTES,
  text: 32 * mebibyte,
  tooLarge: () => fail('file_too_large'),
};

const upTo = (types: readonly BodyType[], kilobytes: number): BodyLimits => {
  const bytes = kilobytes * 1024;
  return {
    types,
    multipart: bytes,
    json: bytes,
    urlencoded: bytes,
    file: bytes,
    text: bytes,
    tooLarge: () =>
      fail('file_too_large', { detail: `The body of this request may have at most ${kilobytes} KB.` }),
  };
};

/** For routes that take no image. */
export const SETTINGS: BodyLimits = upTo(everyType, 256);

/** For the pages of the console. One of its routes is open to anybody. */
export const CONSOLE: BodyLimits = upTo(['json'], 8);

/** Names and values of one body, whatever its type. */
export const mostFields = 1000;
/** Files of a form, those that nobody asked for included. */
export const mostFiles = 16;

/** Bytes that are looked at in a row before others have their turn. */
export const bytesATurn = 4 * mebibyte;
