import { credits, formatCredits, type Tier } from '../billing/price.ts';
import type { Results } from '../idempotency/results.ts';
import type { Ending, Paid } from '../idempotency/sharedResult.ts';
import { probe } from '../image/probe.ts';
import type { Probe, ProbeLimits } from '../image/types.ts';
import type { RateState } from '../limits/rate.ts';
import { tooMany } from '../limits/refuse.ts';
import { type Admission, settle } from './admission.ts';
import { type CachedResult, paymentOf } from './cachedResult.ts';
import type { ImageFetch, OpenFetch } from './fetchImage.ts';
import { createPipeline, type PipelineCall, type PipelineParts } from './pipeline.ts';
import { checkRoi, fullSize, makePlan, reserveRequest, typeWord } from './plan.ts';
import type { Precheck } from './precheck.ts';
import { publicError } from './publicError.ts';
import { type CutoutRequest, settingsOf } from './request.ts';
import { estimateResources } from './resourceEstimate.ts';
import { loadSource } from './source.ts';

export type { Ending };

export interface CutoutParts extends PipelineParts {
  readonly admission: Admission;
  readonly results: Results<CachedResult>;
  /** Images by address. */
  readonly openFetch: OpenFetch;
  readonly precheck: Precheck;
  readonly limits: ProbeLimits;
}

export interface CutoutCall extends PipelineCall {
  readonly accountId: string;
  readonly requestId: string;
  readonly idempotencyKey?: string | undefined;
  /** Aborted with an AppError: the client went away, or time is up. */
  readonly signal: AbortSignal;
  /** `performance.now()` at which time is up; absent: never. */
  readonly deadline?: number;
}

export interface CutoutResult extends Omit<CachedResult, 'charge'> {
  /** True when an earlier answer carried this result, and its charge. */
  readonly replayed: boolean;
  /** The account's window after this call. */
  readonly rate: RateState;
  /**
   * To be called once, with what became of the answer. The charge is final as soon as any of an answer was sent; an
   * answer that was not delivered leaves it to the next one to tell of it. Without any answer nothing is charged.
   */
  ended(ending: Ending): Promise<void>;
}

export type Cutout = (request: CutoutRequest, call: CutoutCall) => Promise<CutoutResult>;

const nothing = credits(0);

/** The images of a request as they were sent. */
interface Sent {
  readonly image: Uint8Array;
  readonly background: Uint8Array | undefined;
  /** What the image's header says, where it had to be looked at before. */
  readonly probed?: Probe;
}

interface Loaded extends Sent {
  /** Of images and settings (`Results.name`). */
  readonly name: string;
}

/** The use case: an image in, its subject out. Knows nothing of HTTP. */
export function createCutout(parts: CutoutParts): Cutout {
  const { admission, results, openFetch, precheck, limits, network, profile } = parts;
  const pipeline = createPipeline(parts);

  /** The image's header and the roi, which belongs to it. */
  async function look(request: CutoutRequest, image: Uint8Array): Promise<Probe> {
    const probed = await probe(image, limits);
    checkRoi(request, probed);
    return probed;
  }

  /** For the addresses of this call. */
  const fetchFor = (request: CutoutRequest, { accountId, telemetry }: CutoutCall): ImageFetch =>
    openFetch({
      accountId,
      telemetry,
      precheck: () => precheck(request, accountId),
      tooMany: async (detail, why) => tooMany(await admission.rate(accountId), detail, why),
    });

  async function load(request: CutoutRequest, images: ImageFetch, signal: AbortSignal): Promise<Sent> {
    const { source, background } = request;
    const from = { images, maxBytes: limits.maxBytes, signal };
    // An address that is never fetched is told before another one is.
    if (source.kind === 'url') images.check(source.url, 'image_url');
    if (background.kind === 'image' && background.source.kind === 'url')
      images.check(background.source.url, 'bg_image_url');
    const image = await loadSource(source, from);
    if (background.kind !== 'image') return { image, background: undefined };
    if (background.source.kind === 'bytes') return { image, background: background.source.bytes };
    // What is wrong with the image is told first, and then nothing is fetched for it (docs/contract.md section 6).
    const probed = await look(request, image);
    return { image, probed, background: await loadSource(background.source, from, 'bg_image_url') };
  }

  /** Steps 3 to 6, for all who wait for this result. */
  async function make(
    request: CutoutRequest,
    loaded: Loaded,
    call: CutoutCall,
    entered: boolean,
  ): Promise<Paid<CachedResult>> {
    const { accountId, requestId, signal, deadline, telemetry } = call;
    // 3. Probe types and headers; nothing is decoded yet.
    const { image, background } = loaded;
    const source = loaded.probed ?? (await look(request, image));
    telemetry.add({
      input: `${source.width}x${source.height} ${source.format}`,
      inputPixels: source.width * source.height,
      inputBytes: image.length,
    });
    const inputs = {
      image: { bytes: image, probe: source },
      background: background && { bytes: background, probe: await probe(background, limits) },
    };
    // 4. Admission: rate, credits, a slot. From here on every way out settles or gives back.
    const repeat = results.repeatOf(loaded.name);
    const reserve = { ...reserveRequest(requestId, request, source), repeat };
    const pixels = source.width * source.height;
    const resources = (tier: Tier) =>
      estimateResources(
        request,
        makePlan(request, tier, source, network, profile),
        source,
        inputs.background?.probe,
      );
    const admitted = { accountId, entered, pixels, reserve, resources, deadline, signal, telemetry };
    return admission.pass(admitted, async (reservation) => {
      // 5. Work.
      const done = await pipeline(request, inputs, reservation.tier, call);
      const { encoded, width, height, foreground, subject, stages } = done;
      signal.throwIfAborted();
      // 6. Settle: only now is anything charged.
      const { charged, charge } = await telemetry.timed('settle', () => settle(reservation));
      // An error costs nothing, however long that took: where nobody waits any more the charge is released.
      signal.throwIfAborted();
      // Here and not where the charge is told: each is made once.
      telemetry.add({ payment: reservation.payment });
      const type = typeWord(subject, request.typeLevel);
      const value: CachedResult = {
        ...encoded,
        width,
        height,
        max: fullSize(source),
        foreground,
        type,
        charged,
        charge,
        stages,
      };
      return { value, payment: paymentOf(reservation), stages };
    });
  }

  return async (request, call) => {
    const { accountId, idempotencyKey, signal, telemetry } = call;
    const images = fetchFor(request, call);
    let loaded: Loaded = { image: new Uint8Array(), background: undefined, name: '' };
    try {
      // 1. Remember: a repeated call gets the kept result, or waits for the one under way.
      const { value, replayed, end } = await results.once({
        accountId,
        idempotencyKey,
        signal,
        content: (everyone) =>
          images.during(async () => {
            // 2. Sources: upload, base64 or guarded download. With the settings they name the result.
            const sent = await load(request, images, everyone);
            const name = await results.name(sent.image, settingsOf(request), sent.background);
            loaded = { ...sent, name };
            return name;
          }),
        work: (everyone) =>
          images.during(() => make(request, loaded, { ...call, signal: everyone }, images.permitted)),
      });
      try {
        const rate = await admission.rate(accountId);
        await images.end();
        signal.throwIfAborted();
        const charged = replayed ? nothing : value.charged;
        telemetry.add({ charged: formatCredits(charged), ...(replayed && { replayed }) });
        const { charge: _, ...kept } = value;
        return { ...kept, charged, replayed, rate, ended: end };
      } catch (error) {
        await end('unsent');
        throw error;
      }
    } catch (error) {
      const told = publicError(error, signal);
      await images.end(told);
      throw told;
    }
  };
}
