import { setTimeout as wait } from 'node:timers/promises';
import { UserError } from '../../errors.ts';
import { faultOf, readBody, shown } from '../httpResponse.ts';
import type { CheckRequest, Fields, Images } from './requests.ts';

/** A service of the API of remove.bg. */
export interface Service {
  /** For people. */
  readonly name: string;
  readonly endpoint: URL;
  readonly account: URL;
  readonly key: string;
  /** The variable that has the key, for messages. */
  readonly keyVariable: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Milliseconds from the request to the end of the answer. */
  readonly ms: number;
}

/** There is no answer to compare: its message is a sentence about the service. */
export class NoAnswer extends UserError {}

export interface Limits {
  readonly timeoutMs: number;
  /** Largest answer that is read. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Longest time that a 429 or 503 is waited for, and how often. */
const maxWaitMs = 60_000;
const waits = 2;

/** A key that no service gives out. */
const wrongKey = 'cutout-check-wrong-key';

/**
 * The service at an address: that of the API without `/v1.0`, or the whole path of its `removebg` (`cutout`). Throws
 * UserError. `option`: the option that has the address.
 */
export function serviceAt(
  option: string,
  address: string,
  who: Pick<Service, 'name' | 'key' | 'keyVariable'>,
): Service {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UserError(`${option} must be an http or https address, not "${address}".`);
  if (url.username !== '' || url.password !== '')
    throw new UserError(`${option} must have no user name and password.`);
  if (/\/(?:removebg|cutout)\/?$/.test(url.pathname))
    return { ...who, endpoint: url, account: new URL('account', url.href.replace(/\/$/, '')) };
  url.search = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return { ...who, endpoint: new URL('v1.0/removebg', url), account: new URL('v1.0/account', url) };
}

/** Reasons in words, by the code of the system, of undici or of OpenSSL. First match wins. */
const faults: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'refuses connections'],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, 'has a name that cannot be resolved'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH)$/, 'cannot be reached'],
  [/^(?:ERR_SSL_|EPROTO)/, 'does not speak TLS; is it an http address?'],
  [/CERT|SELF_SIGNED|UNABLE_TO_/, 'has a certificate that is not trusted'],
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'closed the connection without an answer'],
];

/** undici's error for an answer that is no HTTP; it has no code. */
const isNoHttp = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'HTTPParserError' || isNoHttp(error.cause));

function sentenceOf(error: unknown): string {
  if (isNoHttp(error)) return 'does not speak HTTP';
  const code = faultOf(error);
  const [, words] = faults.find(([pattern]) => pattern.test(code)) ?? [];
  return words === undefined ? `cannot be used (${shown(code)})` : `${words} (${code})`;
}

/** Rejects with NoAnswer; after an abort with the reason of the signal. */
async function ask(url: URL, init: RequestInit, { timeoutMs, maxBytes, signal }: Limits): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const started = performance.now();
  try {
    // A redirect would receive the key.
    const ends = AbortSignal.any([signal, timeout]);
    const response = await fetch(url, { ...init, redirect: 'manual', signal: ends });
    const body = await readBody(response, maxBytes);
    if (body === undefined) throw new NoAnswer(`answered with more than ${maxBytes / 1024 ** 2} MB.`);
    return { status: response.status, headers: response.headers, body, ms: performance.now() - started };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NoAnswer) throw error;
    if (timeout.aborted) throw new NoAnswer(`gave no complete answer within ${timeoutMs / 1000} s.`);
    throw new NoAnswer(`${sentenceOf(error)}.`);
  }
}

/** Milliseconds that the service asks to wait; undefined if another attempt is not worth it. */
function waitOf({ status, headers }: Answer): number | undefined {
  const seconds = Number(headers.get('Retry-After') ?? '');
  const ms = Number.isFinite(seconds) ? 1000 * seconds : 0;
  return [429, 503].includes(status) && ms > 0 && ms <= maxWaitMs ? ms : undefined;
}

export const askAccount = ({ account, key }: Service, limits: Limits): Promise<Answer> =>
  ask(account, { headers: { 'X-Api-Key': key, Accept: 'application/json' } }, limits);

/** Sends a request; waits where the service asks for it. Rejects with NoAnswer. */
export async function askFor(
  { endpoint, key }: Service,
  { accept, wrongKey: unknown, send }: CheckRequest,
  { images, fields, ...limits }: Limits & { readonly images: Images; readonly fields: Fields },
): Promise<Answer> {
  const { body, contentType } = send(images, fields);
  const headers = {
    'X-Api-Key': unknown ? wrongKey : key,
    Accept: accept,
    ...(contentType && { 'Content-Type': contentType }),
  };
  for (let attempt = 0; ; attempt++) {
    const answer = await ask(endpoint, { method: 'POST', body, headers }, limits);
    const pause = waitOf(answer);
    if (pause === undefined || attempt >= waits) return answer;
    await wait(pause, undefined, { signal: limits.signal }).catch((error: unknown) => {
      limits.signal.throwIfAborted();
      throw error;
    });
  }
}
