import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { allSubjectTypes, type SubjectHead } from '../engine/types.ts';
import { ModelError } from './error.ts';
import { parseJson } from './json.ts';

/** Returns the path of this installation's models/types/head.json, relative to build/ts/src/models. */
const installedHead = (): string =>
  fileURLToPath(new URL('../../../../models/types/head.json', import.meta.url));

const bytes = z.base64().transform((text) => new Uint8Array(Buffer.from(text, 'base64')));

/** Little-endian float32. */
const floats = bytes
  .refine((raw) => raw.length % 4 === 0, 'whole floats')
  .transform((raw) => {
    const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
    return Float32Array.from({ length: raw.length / 4 }, (_, at) => view.getFloat32(at * 4, true));
  });

const int8s = bytes.transform((raw) => new Int8Array(raw.buffer, raw.byteOffset, raw.byteLength));

const headSchema = z.object({
  types: z.tuple(allSubjectTypes.map((type) => z.literal(type)) as [z.ZodLiteral, ...z.ZodLiteral[]]),
  hidden: z.number().int().nonnegative(),
  temperature: z.number().positive(),
  threshold: z.number().min(0).max(1),
  mean: floats,
  scale: floats,
  first: int8s,
  firstScale: floats,
  firstBias: floats,
  second: int8s,
  secondScale: floats,
  secondBias: floats,
});

/**
 * Reads the trained classification head of the subject types. Rejects with ModelError if the file is missing
 * or invalid.
 */
export async function readSubjectHead(file: string = installedHead()): Promise<SubjectHead> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new ModelError('MODEL_MISSING', `The classifier head of the subject types, ${file}, is missing.`, {
      cause,
    });
  });
  const title = `The classifier head of the subject types, ${file},`;
  const { types: _, ...head } = parseJson(headSchema, text, title, 'MODEL_DAMAGED');
  return head;
}
