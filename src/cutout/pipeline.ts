import type { Engine } from '../engine/engine.ts';
import type { Box, ComposePlan, MatteResult, SubjectMask, SubjectType } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Colour } from '../geometry/colour.ts';
import { composition, isIdentity } from '../geometry/compose.ts';
import { decodeCover } from '../image/cover.ts';
import { decode } from '../image/decode.ts';
import { assertFits, type Encoded, encode, resolveFormat } from '../image/encode.ts';
import { decodeMask } from '../image/mask.ts';
import { fromSrgb } from '../image/profileConversion.ts';
import type { Dimensions, JobLimits, Raster } from '../image/types.ts';
import type { JobWatch } from '../limits/pixelJobs.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import { isEmptyForeground, type NetworkProfile, type Plan, typeLabel } from './plan.ts';
import { withMaskErrors } from './publicError.ts';
import type { NetworkSize } from './qualityProfile.ts';
import { type CachedResult, resultAttributes } from './result.ts';
import { outputKey, type SubjectSelection } from './subjectSelection.ts';
import { type UncertaintyCurve, uncertaintyScore } from './uncertaintyScore.ts';

export interface PipelineParts extends NetworkProfile {
  readonly engine: Pick<Engine, 'matte' | 'compose' | 'encodePng'>;
  /** The loaded network and the size of its input. */
  readonly network: NetworkSize & { readonly name: string };
  /** Chances of results, by the uncertainty of the network; absent: results have no score. */
  readonly curve?: UncertaintyCurve | undefined;
  /** The network that looks at what leaves the first one in doubt; absent: none does. */
  readonly second?: { readonly name: string; readonly loaded: boolean } | undefined;
  /** Whether the engine classifies subjects; if not, `auto` is `other`. */
  readonly subjectTypes: boolean;
  /** Finds what points or a box show; absent where they are refused. */
  readonly selection?: SubjectSelection | undefined;
  /** Seconds after which libvips gives up on an image; 0: never. */
  readonly timeout: number;
}

export interface PipelineCall {
  readonly accountId: string;
  /** Name of the image; undefined where nothing is cached. */
  readonly imageId: string | undefined;
  readonly signal: AbortSignal;
  /** Times the work with the pixels. */
  readonly watch: JobWatch;
  /** Gets the stages as they end, so it also has those of work that fails. */
  readonly telemetry: RequestTelemetry;
}

export interface PipelineResult
  extends Pick<CachedResult, 'width' | 'height' | 'foreground' | 'type' | 'uncertainty'> {
  readonly encoded: Encoded;
}

/** An image for one `cutOut`, which works in its buffer, and the mask that was sent with it. */
export interface Decoded {
  readonly image: Raster;
  readonly mask: SubjectMask | undefined;
}

/** A matte, in whose buffer the pixels of the result stand, and the type of its subject. */
interface Matted {
  readonly image: Raster;
  readonly matte: Pick<MatteResult, 'box' | 'opaque' | 'uncertainty'>;
  readonly subject: SubjectType;
}

/** The pixels to encode, at the start of `image.data`, which may be longer. */
interface Composed {
  readonly image: Raster;
  /** Box of the subject in them. */
  readonly box: Box;
  readonly opaque: boolean;
}

/** The same pixels in a buffer large enough for a canvas of this size. */
function withCapacity({ width, height }: Dimensions, image: Raster): Raster {
  const needed = width * height * 4;
  if (image.data.length >= needed) return image;
  const data = new Uint8Array(needed);
  data.set(image.data.subarray(0, image.width * image.height * 4));
  return { ...image, data };
}

/** An sRGB colour converted to the profile of an image. */
function inProfile(colour: Colour, icc: Uint8Array | undefined): Colour {
  const [red, green, blue, alpha] = colour;
  const converted = icc && fromSrgb(icc)?.colour([red, green, blue]);
  return converted ? [...converted, alpha] : colour;
}

/** Makes the background for a canvas of this size, in the image's own colour profile. */
async function backgroundLayer(
  { image, background }: Plan,
  canvas: Dimensions,
  jobLimits: JobLimits,
  telemetry: RequestTelemetry,
): Promise<Pick<ComposePlan, 'colour' | 'background'>> {
  const { icc } = image.probe;
  if (background.kind === 'none') return {};
  if (background.kind === 'colour') return { colour: inProfile(background.colour, icc) };
  const { bytes, probe } = background;
  const decoded = () => decodeCover(bytes, probe, canvas, { ...jobLimits, ...(icc && { icc }) });
  return { background: await telemetry.timed('decode', decoded) };
}

/** The stages of a matte; that of the subject only where it was classified. */
const matteTimes = (
  { queueMs, prepareMs, inferMs, subjectMs, matteMs }: MatteResult,
  classified: boolean,
): Stages => ({
  queue: queueMs,
  prepare: prepareMs,
  infer: inferMs,
  ...(classified && { subject: subjectMs }),
  matte: matteMs,
});

/** The subject type, if it is known without the engine. */
const namedSubject = ({ subject }: Plan): SubjectType | undefined =>
  subject === 'classify' || subject === 'unused' ? undefined : subject;

/** The masks that say which subject is meant, and the key under which outputs of the networks for the image are cached. */
interface Selected {
  readonly mask?: SubjectMask | undefined;
  readonly firstMask?: SubjectMask | undefined;
  readonly imageKey?: string | undefined;
}

/** Step 5: from the uploads to the encoded result, in one buffer, which is replaced once if the canvas is larger. */
export class Pipeline {
  readonly #parts: PipelineParts;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  /** Decodes into one straight RGBA8 buffer, in which everything after it works. */
  async decode(plan: Plan, call: PipelineCall): Promise<Decoded> {
    // All sizes but that of a crop are known before decoding. A crop can only be refused once its subject is known: a
    // small subject fits every format, even with the widest margins.
    if (!plan.geometry.crop) assertFits(plan.format, plan.result);
    const jobLimits = this.#jobLimits(call);
    const { image: sent, mask: sentMask } = plan;
    return call.telemetry.timed('decode', async () => ({
      image: await decode(sent.bytes, sent.probe, plan.decode, jobLimits),
      mask:
        sentMask &&
        (await withMaskErrors(decodeMask(sentMask.bytes, sentMask.probe, sentMask.size, jobLimits))),
    }));
  }

  /** Makes the result of a decoded image, whose buffer it uses. Rejects with `unknown_foreground` without a subject. */
  async cutOut(plan: Plan, decoded: Decoded, call: PipelineCall): Promise<PipelineResult> {
    const selected = await this.#select(plan, decoded, call);
    const matted = await this.#matte(plan, decoded.image, selected, call);
    const composed = await this.#compose(plan, matted, call);
    const encoded = await call.telemetry.timed('encode', () => this.#encode(plan, composed, call));
    const { width, height } = composed.image;
    const type = typeLabel(matted.subject, plan.typeLevel);
    const uncertainty = uncertaintyScore(this.#parts.curve, matted.matte.uncertainty);
    call.telemetry.add(resultAttributes({ ...encoded, width, height, uncertainty }));
    return { encoded, width, height, foreground: composed.box, type, uncertainty };
  }

  #jobLimits({ signal, watch }: PipelineCall): JobLimits {
    return { signal, timeoutSeconds: this.#parts.timeout, watch };
  }

  /** Finds which subject is meant, where points or a box say so; otherwise the mask that was sent says it. */
  async #select(
    { prompt }: Plan,
    { image: pixels, mask }: Decoded,
    { accountId, imageId, signal, telemetry }: PipelineCall,
  ): Promise<Selected> {
    const { selection } = this.#parts;
    if (!prompt || !selection) return { mask };
    const found = await telemetry.timed('select', () =>
      selection.find({ accountId, imageId, pixels, prompt, signal }),
    );
    telemetry.add({ encodings: found.embedded ? 1 : 0 });
    return found;
  }

  /** Runs the networks off this thread; the result's pixels end up at the start of the buffer. */
  async #matte(
    plan: Plan,
    decoded: Raster,
    { mask, firstMask, imageKey }: Selected,
    { signal, telemetry }: PipelineCall,
  ): Promise<Matted> {
    const { engine, network, second, subjectTypes, selection } = this.#parts;
    const { result, hiddenColour, input, roi } = plan;
    const classify = plan.subject === 'classify' && subjectTypes;
    const secondName = second?.loaded ? second.name : undefined;
    const outputs = plan.prompt && selection?.outputs;
    const outputSettings = { networks: [network.name, secondName], sizes: [decoded, result, input] };
    const key = imageKey === undefined ? undefined : outputKey(imageKey, outputSettings);
    const cached = key === undefined ? undefined : outputs?.get(key);
    const matte = await engine.matte(
      decoded,
      {
        network: network.name,
        ...(secondName !== undefined && { second: secondName }),
        ...result,
        hiddenColour,
        input,
        ...(roi && { roi }),
        ...(classify && { subject: true }),
        ...(mask && { mask }),
        ...(outputs && { returnOutput: true }),
        ...(firstMask && { firstMask }),
        ...(cached && { cached }),
      },
      { signal },
    );
    if (key !== undefined && matte.output) outputs?.set(key, matte.output);
    telemetry.ended(matteTimes(matte, classify));
    const subject = namedSubject(plan) ?? matte.subject?.type ?? 'other';
    telemetry.add({ runs: matte.runs, second: matte.secondLook, ...(matte.subject && { type: subject }) });
    const area = roi ?? result;
    if (isEmptyForeground(matte.foregroundPixels, area.width * area.height)) throw fail('unknown_foreground');
    return { image: { ...decoded, ...result }, matte, subject };
  }

  /** Composes the canvas: crop, scale and position, shadow, background. */
  async #compose(plan: Plan, { image, matte, subject }: Matted, call: PipelineCall): Promise<Composed> {
    const shadowOpacity = plan.shadowOpacity[subject];
    const composed = composition(plan.result, matte.box, { ...plan.geometry, shadowOpacity });
    const { width, height } = composed;
    assertFits(plan.format, composed);
    if (plan.background.kind === 'none' && isIdentity(plan.result, composed))
      return { image, box: matte.box, opaque: matte.opaque };
    const { signal, telemetry } = call;
    const layers = await backgroundLayer(plan, composed, this.#jobLimits(call), telemetry);
    return telemetry.timed('compose', async () => {
      const { subject: _, ...composePlan } = composed;
      const canvas = withCapacity(composed, image);
      const { box, opaque } = await this.#parts.engine.compose(
        canvas,
        { ...composePlan, ...layers },
        { signal },
      );
      return { image: { data: canvas.data, width, height }, box, opaque };
    });
  }

  #encode(plan: Plan, { image, opaque }: Composed, call: PipelineCall): Promise<Encoded> {
    const { engine, profile } = this.#parts;
    const { channels, lossless } = plan;
    const { width, height } = image;
    const { icc, density } = plan.image.probe;
    const format = resolveFormat(plan.format, { width, height, opaque, channels });
    return encode(
      { data: image.data.subarray(0, width * height * 4), width, height },
      {
        format,
        lossless,
        channels,
        opaque,
        pngEffort: profile.pngEffort,
        ...this.#jobLimits(call),
        ...(icc && { icc }),
        ...(density && { density }),
      },
      engine,
    );
  }
}
