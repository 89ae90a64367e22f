import { UserError } from '../errors.ts';
import { codeOf } from '../files.ts';

/** A running service of the API. */
export interface Service {
  /** Its `removebg`. */
  readonly endpoint: URL;
  readonly key: string;
  readonly variable: string;
}

/** The service of an address before `/v1.0`, or of its `removebg` (`v1.0/cutout`). Throws UserError. */
export function serviceAt(
  option: string,
  address: string,
  variable: string,
  key: string | undefined,
): Service {
  const endpoint = URL.parse(address);
  if (!endpoint || !/^https?:$/.test(endpoint.protocol))
    throw new UserError(`${option} must be an http or https address, not "${address}".`);
  if (endpoint.username !== '' || endpoint.password !== '')
    throw new UserError(`${option} must have no user name and password.`);
  if (key === undefined)
    throw new UserError(`Set ${variable} to the key for ${option}, or to any text if it needs none.`);
  endpoint.search = '';
  const given = endpoint.pathname.replace(/\/$/, '');
  endpoint.pathname = /\/(?:removebg|v1\.0\/cutout)$/.test(given) ? given : `${given}/v1.0/removebg`;
  return { endpoint, key, variable };
}

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
