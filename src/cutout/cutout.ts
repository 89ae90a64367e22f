import type { ContentNames, Idempotency } from '../idempotency/idempotency.ts';
import { answer, type CutoutResult } from './answer.ts';
import type { DownloadsFor } from './imageDownloads.ts';
import { load } from './load.ts';
import { createMakeResult, type ResultCall, type ResultParts } from './makeResult.ts';
import { Permit, type PermitParts } from './permit.ts';
import type { Precheck } from './precheck.ts';
import { publicError } from './publicError.ts';
import type { CutoutRequest } from './request.ts';
import type { CachedResult } from './result.ts';

export interface CutoutParts extends ResultParts, PermitParts {
  readonly idempotency: Idempotency<CachedResult>;
  /** Downloads images by address. */
  readonly downloadsFor: DownloadsFor;
  readonly precheck: Precheck;
}

interface CutoutCall extends Omit<ResultCall, 'permit'> {
  readonly idempotencyKey?: string | undefined;
  /**
   * Keeps the memory of the uploads reserved until the returned function is called: work that is shared with other callers
   * reads them after this caller has left. Absent: no memory is reserved for them.
   */
  readonly retainUploads?: (() => () => void) | undefined;
  /** Aborted with an AppError: the client disconnected, or time is up. */
  readonly signal: AbortSignal;
}

export type Cutout = (request: CutoutRequest, call: CutoutCall) => Promise<CutoutResult>;

/**
 * Creates the use case: an image in, its subject out. Independent of HTTP. docs/architecture.md lists its steps ("One
 * request, one buffer"). Work is shared by all callers that wait for its result.
 */
export function createCutout(parts: CutoutParts): Cutout {
  const { rate, admission, idempotency, downloadsFor, precheck } = parts;
  const makeResult = createMakeResult(parts);
  return async (request, call) => {
    const { accountId, idempotencyKey, retainUploads = () => () => {}, signal, telemetry } = call;
    const permit = new Permit(parts, accountId);
    const downloads = downloadsFor({
      accountId,
      telemetry,
      rate,
      precheck: () => precheck(request, accountId, permit),
    });
    const caller = {
      accountId,
      idempotencyKey,
      signal,
      retain: () => {
        const releases = [retainUploads(), downloads.retain(), permit.retain()];
        return async () => {
          await Promise.all(releases.map((release) => release()));
        };
      },
    };
    let made = false;
    try {
      const result = await idempotency.resultFor(caller, async (keySignal) => {
        // Step 1.
        const watch = await admission.watch(accountId);
        const loaded = await load(request, downloads, { ...parts, watch }, keySignal);
        // Step 2: an earlier result for the same content, or else a new one.
        const make = (names: ContentNames, sharedSignal: AbortSignal) => {
          made = true;
          // Steps 3 to 6.
          return makeResult(request, { ...call, permit }, { loaded, ...names, signal: sharedSignal });
        };
        return idempotency.resultForContent(caller, loaded, make, keySignal);
      });
      // Step 7.
      const release = async () => {
        await downloads.end();
        await permit.end();
      };
      return await answer(result, { accountId, signal, telemetry, release, rate, shared: !made });
    } catch (error) {
      const failure = publicError(error, signal);
      await downloads.end(failure);
      await permit.end();
      throw failure;
    }
  };
}
