import { unzipSync } from 'fflate';
import { z } from 'zod';
import { decode } from '../../image/decode.ts';
import { cannotRead, ImageError } from '../../image/errors.ts';
import { probe } from '../../image/probe.ts';
import type { ProbeLimits, Raster } from '../../image/types.ts';
import { faultOf, readBody, shown } from '../service.ts';
import type { Fields } from './requests.ts';

/** What an answer says, in the terms that are compared. */
export interface Answer {
  /** The status code; 0 if there is no answer. */
  readonly status: number;
  /** Seconds from the request to the end of the answer. */
  readonly seconds: number;
  /** Facts by their names in the report. */
  readonly facts: Fields;
  readonly image?: Raster;
}

/** Facts that services may decide themselves; a client can notice all others. */
export const freeFacts: ReadonlySet<string> = new Set(['type', 'credits', 'error title', 'redirect']);

/** Levels of a JSON text that are looked at. */
const maxDepth = 8;

/** Headers of a result whose values are facts, and those of which only the presence is the contract. */
const sizeHeaders = ['X-Width', 'X-Height', 'X-Max-Width', 'X-Max-Height'];
const presentHeaders = [
  ...['X-Type', 'X-Credits-Charged', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
  ...['Top', 'Left', 'Width', 'Height'].map((side) => `X-Foreground-${side}`),
];

/** The paths of all values of a JSON value; a list counts as its first element. */
function pathsOf(value: unknown, path = '', depth = 0): string[] {
  if (typeof value !== 'object' || value === null || depth === maxDepth) return [path];
  if (Array.isArray(value)) return pathsOf(value[0], `${path}[]`, depth + 1);
  return Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, `${path}.${key}`, depth + 1));
}

const text = z.string().transform(shown);
const envelope = z.object({ errors: z.array(z.object({ code: text, title: text }).partial()) });

/** The facts in a JSON body: of an error its code and title, and the paths of its values. */
function jsonFacts(body: Buffer): Fields {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    return { keys: 'no JSON' };
  }
  const { code = '', title = '' } = envelope.safeParse(json).data?.errors[0] ?? {};
  return { 'error code': code, 'error title': title, keys: shown(pathsOf(json).sort().join(', ')) };
}

/** The names of a ZIP's entries, of which nothing is unpacked. Throws ImageError. */
function entriesOf(body: Buffer): string {
  const names: string[] = [];
  try {
    unzipSync(body, { filter: ({ name }) => names.push(shown(name)) < 0 });
  } catch (error) {
    throw cannotRead('The ZIP cannot be read.', error);
  }
  return names.slice(0, 20).join(', ');
}

/** The facts in the headers of a result; `header` is the value of one, or empty. */
const headerFacts = (header: (name: string) => string): Fields => ({
  ...Object.fromEntries(presentHeaders.map((name) => [name, header(name) && 'present'])),
  ...Object.fromEntries(sizeHeaders.map((name) => [name, header(name)])),
  type: header('X-Type'),
  credits: header('X-Credits-Charged'),
});

/** The facts in the body of a result, and its image. */
async function bodyFacts(
  type: string,
  body: Buffer,
  limits: ProbeLimits,
): Promise<Pick<Answer, 'facts' | 'image'>> {
  try {
    if (type === 'application/json') return { facts: jsonFacts(body) };
    if (type === 'application/zip') return { facts: { entries: entriesOf(body) } };
    const found = await probe(body, limits);
    const channels = found.hasAlpha ? `${found.colour} and alpha` : found.colour;
    const image = await decode(body, found, found, { timeoutSeconds: 60 });
    return { facts: { format: found.format, channels }, image };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return { facts: { unreadable: error.detail } };
  }
}

/** Sends a request. No answer is one of status 0 that says why; rejects with the reason of an aborted `signal`. */
export async function ask(
  url: URL,
  init: RequestInit,
  limits: { readonly timeoutMs: number; readonly image: ProbeLimits; readonly signal: AbortSignal },
): Promise<Answer> {
  const { timeoutMs, image } = limits;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([limits.signal, timeout]);
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  const none = (title: string) => ({ status: 0, seconds: seconds(), facts: { 'error title': title } });
  try {
    // A redirect would receive the key.
    const response = await fetch(url, { ...init, redirect: 'manual', signal });
    const body = await readBody(response, image.maxBytes);
    if (body === undefined) return none(`more than ${image.maxBytes / 1024 ** 2} MB`);
    const answer = { status: response.status, seconds: seconds() };
    const header = (name: string) => shown(response.headers.get(name) ?? '');
    const type = header('Content-Type').split(';', 1)[0]?.toLowerCase() ?? '';
    const isResult = response.status === 200;
    const found = isResult ? await bodyFacts(type, body, image) : { facts: jsonFacts(body) };
    const facts = { redirect: header('Location'), ...(isResult && headerFacts(header)), ...found.facts };
    const stated = Object.entries({ 'Content-Type': type, ...facts }).filter(([, fact]) => fact !== '');
    return { ...answer, ...found, facts: Object.fromEntries(stated) };
  } catch (error) {
    limits.signal.throwIfAborted();
    return none(timeout.aborted ? `no complete answer within ${timeoutMs / 1000} s` : shown(faultOf(error)));
  }
}
