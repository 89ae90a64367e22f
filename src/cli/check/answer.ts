import { unzipSync } from 'fflate';
import { z } from 'zod';
import { decode } from '../../image/decode.ts';
import { ImageError } from '../../image/errors.ts';
import { probe } from '../../image/probe.ts';
import type { ProbeLimits, Raster } from '../../image/types.ts';
import { faultOf, readBody, shown } from '../httpResponse.ts';
import type { Fields } from './requests.ts';

/** What an answer says, in the terms that are compared. */
export interface Answer {
  /** The status code; 0 if there is no answer. */
  readonly status: number;
  /** Seconds from the request to the end of the answer. */
  readonly seconds: number;
  /** What a client can notice, by its name in the report. */
  readonly contract: Fields;
  /** What services may decide themselves, such as the subject's type, the price or the wording. */
  readonly other: Fields;
  readonly picture?: Raster;
}

export interface AskLimits {
  readonly timeoutMs: number;
  /** `maxBytes` bounds the answer too. */
  readonly image: ProbeLimits;
  readonly signal: AbortSignal;
}

type Facts = Pick<Answer, 'contract' | 'other' | 'picture'>;

/** Longest time to decode an image. */
const timeoutSeconds = 60;
/** Levels of a JSON text that are looked at. */
const maxDepth = 8;

/** Headers of a result whose values are part of the contract, are the service's choice, or change at every request. */
const fixedHeaders = ['X-Width', 'X-Height', 'X-Max-Width', 'X-Max-Height'];
const freeHeaders = ['X-Type', 'X-Credits-Charged'];
const changingHeaders = ['Foreground-Top', 'Foreground-Left', 'Foreground-Width', 'Foreground-Height']
  .concat('RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset')
  .map((name) => `X-${name}`);

/** The paths of all values of a JSON value; a list counts as its first element. */
function pathsOf(value: unknown, path = '', depth = 0): string[] {
  if (typeof value !== 'object' || value === null || depth === maxDepth) return [path];
  if (Array.isArray(value)) return pathsOf(value[0], `${path}[]`, depth + 1);
  return Object.entries(value).flatMap(([key, inner]) =>
    pathsOf(inner, path === '' ? key : `${path}.${key}`, depth + 1),
  );
}

/** A JSON text and the paths of its values. */
function parse(body: Buffer): { readonly json?: unknown; readonly keys: string } {
  try {
    const json: unknown = JSON.parse(body.toString());
    return { json, keys: shown(pathsOf(json).sort().join(', ')) };
  } catch {
    return { keys: 'no JSON' };
  }
}

const envelope = z.object({
  errors: z.array(
    z.object({ code: z.string().transform(shown), title: z.string().transform(shown) }).partial(),
  ),
});

function errorFacts(body: Buffer): Facts {
  const { json, keys } = parse(body);
  const { code, title } = envelope.safeParse(json).data?.errors[0] ?? {};
  return {
    contract: { ...(code && { 'error code': code }), 'keys of the error': keys },
    other: { ...(title && { 'error title': title }) },
  };
}

/** Rejects with ImageError. */
async function resultFacts(type: string, body: Buffer, limits: ProbeLimits): Promise<Facts> {
  if (type === 'application/json') return { contract: { parts: parse(body).keys }, other: {} };
  if (type === 'application/zip') {
    const names: string[] = [];
    try {
      // Nothing is unpacked.
      unzipSync(body, { filter: ({ name }) => names.push(shown(name)) < 0 });
    } catch (error) {
      throw new ImageError('failed_to_read_image', 'The ZIP cannot be read.', error);
    }
    return { contract: { parts: names.slice(0, 20).join(', ') }, other: {} };
  }
  const found = await probe(body, limits);
  const channels = found.hasAlpha ? `${found.colour} and alpha` : found.colour;
  const picture = await decode(body, found, found, { timeoutSeconds });
  return { contract: { 'image format': found.format, channels }, other: {}, picture };
}

/** The facts of an answer; that a result cannot be read is one of them. */
async function factsOf({ status, headers }: Response, body: Buffer, limits: ProbeLimits): Promise<Facts> {
  const type = shown(headers.get('Content-Type')?.split(';', 1)[0]?.toLowerCase() ?? '');
  const pairs = (names: readonly string[], value?: string) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const found = headers.get(name);
        return found === null ? [] : [[name, value ?? shown(found)]];
      }),
    );
  const isResult = status === 200;
  const facts = isResult
    ? await resultFacts(type, body, limits).catch((error: unknown): Facts => {
        if (!(error instanceof ImageError)) throw error;
        return { contract: { unreadable: error.detail }, other: {} };
      })
    : errorFacts(body);
  return {
    ...facts,
    contract: {
      'Content-Type': type || 'absent',
      ...(isResult && { ...pairs(fixedHeaders), ...pairs([...freeHeaders, ...changingHeaders], 'present') }),
      ...facts.contract,
    },
    other: { ...(isResult ? pairs(freeHeaders) : pairs(['Location'])), ...facts.other },
  };
}

/** Sends a request. No answer is one of status 0 that says why; rejects with the reason of an aborted signal. */
export async function ask(
  url: URL,
  init: RequestInit,
  { timeoutMs, image, signal }: AskLimits,
): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  const none = (reason: string) => ({
    status: 0,
    seconds: seconds(),
    contract: {},
    other: { 'error title': reason },
  });
  try {
    const ends = AbortSignal.any([signal, timeout]);
    // A redirect would receive the key.
    const response = await fetch(url, { ...init, redirect: 'manual', signal: ends });
    const body = await readBody(response, image.maxBytes);
    if (body === undefined) return none(`more than ${image.maxBytes / 1024 ** 2} MB`);
    return { status: response.status, seconds: seconds(), ...(await factsOf(response, body, image)) };
  } catch (error) {
    signal.throwIfAborted();
    return none(timeout.aborted ? `no complete answer within ${timeoutMs / 1000} s` : shown(faultOf(error)));
  }
}
