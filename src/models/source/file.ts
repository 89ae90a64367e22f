import { constants, createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { ModelError } from '../error.ts';
import type { OpenSource } from './delivery.ts';

/** Opens a local file, which is copied; the original stays. */
export function fileSource(file: string): OpenSource {
  return async (_resume, signal) => {
    await access(file, constants.R_OK).catch((cause: unknown) => {
      throw new ModelError('MODEL_SOURCE', `The file ${file} does not exist or cannot be read.`, { cause });
    });
    return { offset: 0, bytes: createReadStream(file, { signal, highWaterMark: 1 << 20 }) };
  };
}
