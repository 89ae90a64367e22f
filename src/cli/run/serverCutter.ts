import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import pRetry, { type RetryContext } from 'p-retry';
import { z } from 'zod';
import { noScore } from '../../cutout/uncertaintyScore.ts';
import { UserError } from '../../errors.ts';
import { faultOf, readBody, type Service, serviceAt, shown } from '../service.ts';
import type { CutoutFile, Cutter, Wanted } from './cutter.ts';
import { RunError, type RunFormat } from './results.ts';

interface ServerOptions extends Wanted {
  /** Address of the server, as `serviceAt` takes it. */
  readonly server: string;
  readonly apiKey: string | undefined;
  /** Default: `defaultJobs`. */
  readonly jobs?: number | undefined;
  /** Ends the check of the server. */
  readonly signal: AbortSignal;
}

/** Images that are sent at a time; a server with less capacity answers 429 or 503, which are repeated. */
const defaultJobs = 4;
/** Attempts after the first one that are spent on a server that fails or cannot be reached. */
const retries = 5;
const firstDelayMs = 500;
const maxDelayMs = 15_000;
/** Longest time for one image, waiting for a rate limit included. */
const maxRetryMs = 15 * 60_000;
const answerMs = 5 * 60_000;
/** Longest time for the answer that shows whether server and key are right. */
const checkMs = 30_000;
/** As many images in a row that could not be sent end the run. */
const maxUnreachable = 3;

/** Largest result that is read, and most of an error. */
const maxResultBytes = 512 * 1024 ** 2;
const maxErrorBytes = 64 * 1024;

/** Status codes that are worth another attempt. */
const transient: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);
/** Status codes that every other image would get too. */
const final: ReadonlySet<number> = new Set([401, 402, 403]);

const envelope = z.object({
  errors: z.array(z.object({ title: z.string().default(''), detail: z.string().default('') })).min(1),
});

/** An answer that may be another one later. */
class TransientError extends UserError {
  readonly status: number;
  /** Milliseconds that the server asks to wait. */
  readonly waitMs: number;

  constructor(message: string, status: number, waitMs: number) {
    super(message);
    this.status = status;
    this.waitMs = waitMs;
  }
}

/** What the server said is wrong, in one sentence. */
async function reasonIn(response: Response): Promise<string> {
  const body = await readBody(response, maxErrorBytes);
  let parsed: unknown;
  try {
    parsed = JSON.parse(body?.toString() ?? '');
  } catch {
    // A proxy in front of the server, for example.
  }
  const found = envelope.safeParse(parsed);
  const [first] = found.success ? found.data.errors : [];
  if (!first) return `The server answered with status ${response.status}.`;
  const parts = [first.title.replace(/[.:]$/, ''), first.detail];
  return shown(parts.filter((part) => part !== '').join(': '));
}

/** Milliseconds of Retry-After in seconds, at least one second; 0 without it. */
function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get('Retry-After') ?? '');
  return Number.isFinite(seconds) && seconds > 0 ? 1000 * Math.max(1, seconds) : 0;
}

/** The error of any answer but a result. */
async function failureOf(response: Response): Promise<UserError> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    const target = headers.get('Location') ?? 'another address';
    return new RunError(`The server redirects to ${shown(target)}: give that to --server.`);
  }
  const reason = await reasonIn(response);
  if (transient.has(status)) return new TransientError(reason, status, retryAfter(response));
  return final.has(status) ? new RunError(reason) : new UserError(reason);
}

/** `X-Uncertainty-Score`, 0 to 1; -1 from servers that send none. */
function scoreIn(headers: Headers): number {
  const score = Number(headers.get('X-Uncertainty-Score') ?? Number.NaN);
  return score >= 0 && score <= 1 ? score : noScore;
}

async function resultOf(response: Response): Promise<CutoutFile> {
  const { status, headers } = response;
  if (status !== 200) throw await failureOf(response);
  const bytes = await readBody(response, maxResultBytes);
  if (bytes === undefined)
    throw new RunError(`The server answered with more than ${maxResultBytes / 1024 ** 2} MB.`);
  const charged = Number(headers.get('X-Credits-Charged') ?? '');
  return {
    bytes,
    contentType: (headers.get('Content-Type') ?? '').split(';', 1)[0] ?? '',
    creditsCharged: Number.isFinite(charged) && charged > 0 ? charged : 0,
    uncertainty: scoreIn(headers),
  };
}

/** Rejects with UserError if the server cannot be reached or does not accept the key. */
async function checkServer({ endpoint, key }: Service, signal: AbortSignal): Promise<void> {
  let response: Response;
  try {
    response = await fetch(new URL('account', endpoint), {
      redirect: 'manual',
      headers: { 'X-Api-Key': key, Accept: 'application/json' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(checkMs)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new UserError(`${new URL('..', endpoint).href} could not be reached (${faultOf(error)}).`);
  }
  if (response.ok || transient.has(response.status)) return response.body?.cancel();
  throw await failureOf(response);
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Equal for the same image with the same mask and options, in every run. */
function idempotencyKeyOf(
  image: Uint8Array,
  { size, lossless, mask, points, box, format }: Wanted & { readonly format: RunFormat },
): string {
  const masked = mask ? ` mask ${sha256(mask)}` : '';
  const guided = points === undefined && box === undefined ? '' : ` guide ${JSON.stringify([points, box])}`;
  const encoding = lossless ? `${format} lossless` : format;
  return createHash('sha256')
    .update(`cutout run ${size} ${encoding}${masked}${guided}\n`)
    .update(image)
    .digest('hex');
}

/** Waits as long as the server asks for, less what p-retry waits anyway. */
async function pause({ error, retryDelay }: RetryContext, signal: AbortSignal): Promise<void> {
  if (!(error instanceof TransientError)) return;
  if (error.waitMs > maxRetryMs) throw error;
  await wait(Math.max(0, error.waitMs - retryDelay), undefined, { signal });
}

/** Asks the server once. Rejects with UserError, of a server that does not answer with TransientError of status 0. */
async function attempt(
  { endpoint, key }: Service,
  { size, lossless, points, box, mask }: Wanted,
  { image, format, idempotencyKey }: { image: Uint8Array; format: RunFormat; idempotencyKey: string },
  signal: AbortSignal,
): Promise<CutoutFile> {
  const form = new FormData();
  form.set('size', size);
  form.set('format', format);
  if (lossless) form.set('lossless', 'true');
  form.set('image_file', new Blob([Uint8Array.from(image)]), 'image');
  if (points !== undefined) form.set('subject_points', points);
  if (box !== undefined) form.set('subject_box', box);
  if (mask) form.set('mask_file', new Blob([Uint8Array.from(mask)]), 'mask');
  const headers = {
    'X-Api-Key': key,
    Accept: 'image/*, application/zip',
    'Idempotency-Key': idempotencyKey,
  };
  const until = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
  try {
    const init = { method: 'POST', body: form, redirect: 'manual', headers, signal: until } as const;
    return { ...(await resultOf(await fetch(endpoint, init))), idempotencyKey };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UserError) throw error;
    throw new TransientError(`The server could not be reached (${faultOf(error)}).`, 0, 0);
  }
}

/**
 * Cuts out by the API of a server. Rate limits are waited for, failures of the server or the connection are
 * repeated; one `Idempotency-Key` an image keeps a repeat, of a later run too, from being charged again while the
 * server keeps the result. Rejects with UserError if the server cannot be reached or does not accept the key.
 */
export async function openServerCutter(options: ServerOptions): Promise<Cutter> {
  const service = serviceAt('--server', options.server, 'CUTOUT_API_KEY', options.apiKey);
  await checkServer(service, options.signal);
  /** Images in a row that could not be sent. */
  let unreachable = 0;
  const cut: Cutter['cut'] = async (image, format, signal) => {
    const idempotencyKey = idempotencyKeyOf(image, { ...options, format });
    const once = async () => {
      const result = await attempt(service, options, { image, format, idempotencyKey }, signal);
      unreachable = 0;
      return result;
    };
    try {
      return await pRetry(once, {
        retries,
        minTimeout: firstDelayMs,
        maxTimeout: maxDelayMs,
        randomize: true,
        maxRetryTime: maxRetryMs,
        signal,
        // A rate limit is not a failure.
        shouldConsumeRetry: ({ error }) =>
          !(error instanceof TransientError && error.status === 429 && error.waitMs > 0),
        onFailedAttempt: (context) => pause(context, signal),
        shouldRetry: ({ error }) => error instanceof TransientError && unreachable < maxUnreachable,
      });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof TransientError && error.status === 0) unreachable += 1;
      if (error instanceof UserError && unreachable >= maxUnreachable) throw new RunError(error.message);
      throw error;
    }
  };
  return { jobs: options.jobs ?? defaultJobs, cut, close: async () => {} };
}
