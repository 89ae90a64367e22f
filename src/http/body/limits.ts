import { type AppError, fail } from '../../errors.ts';
import { maxFileBytes } from '../../inputLimits.ts';

const mebibyte = 1024 * 1024;

/** Media types of a body, as `request.is` names them. */
export type BodyType = 'multipart/form-data' | 'urlencoded' | 'json';

/** The maximum number of bytes of a body of each type, and of a file and of all texts in a form. */
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

/** Limits of docs/contract.md section 3. Allows the largest file in base64 and percent-encoding. */
export const imageBodyLimits: BodyLimits = {
  types: everyType,
  multipart: 66 * mebibyte,
  json: 32 * mebibyte,
  urlencoded: 48 * mebibyte,
  file: maxFileBytes,
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

/** Limits of routes that take no image. */
export const smallBodyLimits: BodyLimits = upTo(everyType, 256);

/** Limits of the console's API, one route of which needs no session. */
export const consoleBodyLimits: BodyLimits = upTo(['json'], 8);

/** The maximum number of files of a form, unknown ones included. */
export const maxFiles = 16;

/** Bytes that are scanned before the event loop gets a turn. */
export const bodyBytesPerTurn = 4 * mebibyte;
