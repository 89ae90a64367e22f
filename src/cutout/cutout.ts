import { formatCredits, type QuarterCredits } from '../billing/price.ts';
import type { Reservation, Reservations } from '../billing/reservation.ts';
import type { Engine } from '../engine/engine.ts';
import type { Box } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Download } from '../fetch/download.ts';
import { decode } from '../image/decode.ts';
import { assertFits, type Encoded, encode, resolveFormat } from '../image/encode.ts';
import { ImageError } from '../image/errors.ts';
import { probe } from '../image/probe.ts';
import type { Dimensions, Probe, ProbeLimits } from '../image/types.ts';
import type { Admission } from '../limits/admission.ts';
import { fullSize, lacksSubject, makePlan, reserveRequest, typeWord } from './plan.ts';
import type { CutoutRequest } from './request.ts';
import { loadSource } from './source.ts';

export interface CutoutParts {
  readonly engine: Pick<Engine, 'matte' | 'encodePng'>;
  /** The loaded network and the size of its input. */
  readonly network: Dimensions & { readonly name: string };
  readonly reservations: Reservations;
  readonly download: Download;
  readonly limits: ProbeLimits;
  readonly admission: Admission;
  /** Seconds after which libvips gives up on a picture. */
  readonly timeout: number;
}

export interface CutoutCall {
  readonly accountId: string;
  readonly requestId: string;
  /** Aborted with an AppError: the client went away, or time is up. */
  readonly signal: AbortSignal;
  /** Takes what the request's line in the log should say; also called when the work fails later. */
  readonly note: (facts: Readonly<Record<string, unknown>>) => void;
}

export interface CutoutResult extends Encoded, Dimensions {
  /** What `size=full` would give. */
  readonly max: Dimensions;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** Kind of subject, in the words of the level asked for; absent when not asked for. */
  readonly type: string | undefined;
  readonly charged: QuarterCredits;
  /** To be called once the answer is out or its client gone: until then a crash gives the charge back. */
  delivered(): Promise<void>;
}

export type Cutout = (request: CutoutRequest, call: CutoutCall) => Promise<CutoutResult>;

const pngEffort = 3;

const milliseconds = (since: number) => Math.round(performance.now() - since);

/** Errors of the parts below, in the words of the contract. */
function publicError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ImageError) return fail(error.code, { detail: error.detail, cause: error.cause });
  return error;
}

/** The use case: a picture in, its subject out. Knows nothing of HTTP. */
export function createCutout(parts: CutoutParts): Cutout {
  const { engine, network, reservations, download, limits, admission, timeout } = parts;

  async function reserve(request: CutoutRequest, source: Dimensions, call: CutoutCall): Promise<Reservation> {
    const asked = await reservations.reserve(call.accountId, reserveRequest(call.requestId, request, source));
    if (asked.outcome === 'reserved') return asked.reservation;
    const needed = formatCredits(asked.needed);
    throw fail('insufficient_credits', {
      detail: `This request needs ${needed} ${needed === '1' ? 'credit' : 'credits'}, the balance is ${formatCredits(asked.balance)}.`,
    });
  }

  async function admit(signal: AbortSignal): Promise<() => void> {
    const entered = await admission.enter(signal);
    if (entered.outcome === 'admitted') return entered.leave;
    throw fail('service_unavailable', {
      detail: 'Too many requests are waiting. Try again.',
      headers: { 'Retry-After': String(entered.retryAfter) },
    });
  }

  /** Steps 5 to 8: from the upload to the encoded result, in one buffer. */
  async function work(
    request: CutoutRequest,
    bytes: Uint8Array,
    source: Probe,
    tier: Reservation['tier'],
    { signal, note }: CutoutCall,
  ) {
    // 5. Plan: every size is known before a pixel is decoded.
    const plan = makePlan(request, tier, source, network);
    assertFits(request.format, plan.result);
    const { width, height } = plan.result;
    const patience = { signal, timeoutSeconds: timeout };

    // 6. Decode to one straight RGBA8 buffer; everything below happens in it.
    let started = performance.now();
    const picture = await decode(bytes, source, plan.decode, patience);
    note({ decodeMs: milliseconds(started) });

    // 7. Matte: off this thread; the result's pixels end up at the start of the buffer.
    const matte = await engine.matte(
      picture,
      { network: network.name, width, height, hiddenColour: plan.hiddenColour },
      { signal },
    );
    const { queueMs, prepareMs, inferMs, matteMs, foregroundPixels, opaque } = matte;
    note({
      queueMs: Math.round(queueMs),
      prepareMs: Math.round(prepareMs),
      inferMs: Math.round(inferMs),
      matteMs: Math.round(matteMs),
    });
    if (lacksSubject(foregroundPixels, width * height)) throw fail('unknown_foreground');

    // 8. Encode.
    started = performance.now();
    const { channels } = request;
    const raster = { data: picture.data.subarray(0, width * height * 4), width, height };
    const format = resolveFormat(request.format, { width, height, opaque, channels });
    const { icc, density } = source;
    const encoded = await encode(
      raster,
      { format, channels, opaque, pngEffort, ...patience, ...(icc && { icc }), ...(density && { density }) },
      (pixels, options) => engine.encodePng(pixels, options, { signal }),
    );
    note({ encodeMs: milliseconds(started), result: `${width}x${height} ${format}` });
    return { encoded, width, height, foreground: matte.box };
  }

  return async (request, call) => {
    const { signal, note } = call;
    try {
      // 1. Source: upload, base64 or guarded download.
      const bytes = await loadSource(request.source, { download, maxBytes: limits.maxBytes, signal });
      // 2. Probe type and header; nothing is decoded yet.
      const source = await probe(bytes, limits);
      note({ input: `${source.width}x${source.height} ${source.format}`, bytes: bytes.length });
      // 3. Reserve. From here on every way out settles or releases.
      const reservation = await reserve(request, source, call);
      try {
        // 4. Wait for a turn, or be refused when too many wait.
        const leave = await admit(signal);
        const done = await work(request, bytes, source, reservation.tier, call).finally(leave);
        signal.throwIfAborted();
        // 9. Settle: only now is anything charged.
        const charged = await reservation.settle('pending');
        note({ charged: formatCredits(charged) });
        const { encoded, width, height, foreground } = done;
        return {
          ...encoded,
          width,
          height,
          max: fullSize(source),
          foreground,
          type: typeWord(request.type, request.typeLevel),
          charged,
          delivered: () => reservation.delivered(),
        };
      } catch (error) {
        await reservation.release();
        throw error;
      }
    } catch (error) {
      throw publicError(error, signal);
    }
  };
}
