import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import { ModelError } from './error.ts';

/**
 * Validates the text of a JSON file that comes with a network. Throws ModelError with this code, whose message names file
 * and field.
 * @param title of the file, as the beginning of a sentence
 */
export function parseJson<T>(
  schema: z.ZodType<T>,
  text: string,
  title: string,
  code: 'MODEL_UNSUPPORTED' | 'MODEL_DAMAGED' = 'MODEL_UNSUPPORTED',
): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new ModelError(code, `${title} is not valid JSON.`, { cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new ModelError(code, `${title} is not valid:\n${z.prettifyError(parsed.error)}`);
}

const maxKeptBytes = 64 * 1024;

/** Reads a JSON file that Cutout wrote; undefined without one of its kind. */
export async function readKept<T>(schema: z.ZodType<T>, file: string): Promise<T | undefined> {
  try {
    const found = await stat(file);
    // A pipe would never end.
    if (!found.isFile() || found.size > maxKeptBytes) return undefined;
    return schema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return undefined;
  }
}
