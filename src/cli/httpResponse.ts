import { codeOf } from '../files.ts';

/** Longest text of a server that is shown. */
const maxShown = 500;

/** Text that a server sent, safe to be shown on a terminal. */
export const shown = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .slice(0, maxShown);

/** The body of a response; undefined if it is longer than `maxBytes`, of which no more is read. */
export async function readBody(response: Response, maxBytes: number): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the response.
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Why fetch failed: the code of the system or of undici, or else its sentence. */
export function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return codeOf(error) ?? (error.cause === undefined ? error.message : faultOf(error.cause));
}
