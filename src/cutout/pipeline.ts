import type { Engine } from '../engine/engine.ts';
import type { Box, ComposePlan, SubjectMask, SubjectType } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Colour } from '../geometry/colour.ts';
import { composition, isIdentity } from '../geometry/compose.ts';
import { decodeCover } from '../image/cover.ts';
import { decode } from '../image/decode.ts';
import { assertFits, type Encoded, encode, resolveFormat } from '../image/encode.ts';
import { fromSrgb } from '../image/icc.ts';
import { decodeMask } from '../image/mask.ts';
import type { Dimensions, JobLimits, Raster } from '../image/types.ts';
import type { JobWatch } from '../limits/pixelJobs.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import { resultAttributes } from './cachedResult.ts';
import { withMaskErrors } from './maskError.ts';
import { isEmptyForeground, type NetworkProfile, type Plan, typeLabel } from './plan.ts';
import type { NetworkSize } from './qualityProfile.ts';
import type { SubjectSelection } from './subjectSelection.ts';

export interface PipelineParts extends NetworkProfile {
  readonly engine: Pick<Engine, 'matte' | 'compose' | 'encodePng'>;
  /** The loaded network and the size of its input. */
  readonly network: NetworkSize & { readonly name: string };
  /** Name of the loaded second network; absent: the first one runs alone. */
  readonly second?: string | undefined;
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

export interface PipelineResult extends Dimensions {
  readonly encoded: Encoded;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** X-Type: the subject named or classified, at the requested level; undefined for level `none`. */
  readonly type: string | undefined;
  readonly stages: Stages;
}

/** Step 5: from the uploads to the encoded result, in one buffer, which is replaced once if the canvas is larger. */
export type Pipeline = (plan: Plan, call: PipelineCall) => Promise<PipelineResult>;

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

/** The background for a canvas of this size, in the image's own colour profile. */
async function backgroundLayer(
  { image, background }: Plan,
  canvas: Dimensions,
  jobLimits: JobLimits,
): Promise<Pick<ComposePlan, 'colour' | 'background'>> {
  const { icc } = image.probe;
  if (background.kind === 'none') return {};
  if (background.kind === 'colour') return { colour: inProfile(background.colour, icc) };
  const { bytes, probe } = background;
  return { background: await decodeCover(bytes, probe, canvas, { ...jobLimits, ...(icc && { icc }) }) };
}

/** The subject type, if it is known without the engine. */
const namedSubject = ({ subject }: Plan): SubjectType | undefined =>
  subject === 'classify' || subject === 'unused' ? undefined : subject;

export const createPipeline =
  ({ engine, network, second, profile, subjectTypes, selection, timeout }: PipelineParts): Pipeline =>
  async (plan, { accountId, imageId, signal, watch, telemetry }) => {
    let stages: Stages = {};
    const add = (more: Stages) => {
      stages = { ...stages, ...more };
      telemetry.ended(more);
    };

    // All sizes but that of a crop are known before decoding. A crop can only be refused once its subject is known: a
    // small subject fits every format, even with the widest margins.
    const { bytes, probe: source } = plan.image;
    const { result, hiddenColour, input, roi } = plan;
    const { pngEffort } = profile;
    if (!plan.geometry.crop) assertFits(plan.format, result);
    const jobLimits = { signal, timeoutSeconds: timeout, watch };

    // Decode into one straight RGBA8 buffer, in which everything below works.
    let started = performance.now();
    const decoded = await decode(bytes, source, plan.decode, jobLimits);
    let mask: SubjectMask | undefined =
      plan.mask &&
      (await withMaskErrors(decodeMask(plan.mask.bytes, plan.mask.probe, plan.mask.size, jobLimits)));
    add({ decode: performance.now() - started });

    // Which subject, where points or a box say so.
    const outputs = plan.prompt && selection?.outputs;
    let imageKey: string | undefined;
    let firstMask: SubjectMask | undefined;
    if (plan.prompt && selection) {
      started = performance.now();
      const { prompt } = plan;
      const found = await selection.find({ accountId, imageId, pixels: decoded, prompt, signal });
      ({ mask, firstMask, imageKey } = found);
      telemetry.add({ encodings: found.embedded ? 1 : 0 });
      add({ select: performance.now() - started });
    }

    // Matte and subject type, off this thread; the result's pixels end up at the start of the buffer.
    const classify = plan.subject === 'classify' && subjectTypes;
    // Beside a smaller input, which is for speed, the second network would take as long as the first.
    const defaultSize = input.width === network.width && input.height === network.height;
    const beside = defaultSize ? second : undefined;
    const outputSettings = { networks: [network.name, beside], sizes: [decoded, result, input] };
    const cached = imageKey === undefined ? undefined : outputs?.get(imageKey, outputSettings);
    const matte = await engine.matte(
      decoded,
      {
        network: network.name,
        ...(beside !== undefined && { second: beside }),
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
    if (imageKey !== undefined && matte.output) outputs?.set(imageKey, outputSettings, matte.output);
    const { queueMs, prepareMs, inferMs, subjectMs, matteMs } = matte;
    add({
      queue: queueMs,
      prepare: prepareMs,
      infer: inferMs,
      ...(classify && { subject: subjectMs }),
      matte: matteMs,
    });
    const subject = namedSubject(plan) ?? matte.subject?.type ?? 'other';
    telemetry.add({ runs: matte.runs, ...(matte.subject && { type: subject }) });
    const area = roi ?? result;
    if (isEmptyForeground(matte.foregroundPixels, area.width * area.height)) throw fail('unknown_foreground');

    // Compose: crop, scale and position, shadow, background.
    const shadowOpacity = plan.shadowOpacity[subject];
    const composed = composition(result, matte.box, { ...plan.geometry, shadowOpacity });
    const { width, height } = composed;
    assertFits(plan.format, composed);
    let image: Raster = { ...decoded, ...result };
    let { box, opaque } = matte;
    if (plan.background.kind !== 'none' || !isIdentity(result, composed)) {
      started = performance.now();
      const { subject: _, ...composePlan } = composed;
      const layers = await backgroundLayer(plan, composed, jobLimits);
      image = withCapacity(composed, image);
      ({ box, opaque } = await engine.compose(image, { ...composePlan, ...layers }, { signal }));
      add({ compose: performance.now() - started });
    }

    // Encode.
    started = performance.now();
    const { channels, lossless } = plan;
    const raster = { data: image.data.subarray(0, width * height * 4), width, height };
    const format = resolveFormat(plan.format, { width, height, opaque, channels });
    const { icc, density } = source;
    const encoded = await encode(
      raster,
      {
        format,
        lossless,
        channels,
        opaque,
        pngEffort,
        ...jobLimits,
        ...(icc && { icc }),
        ...(density && { density }),
      },
      engine,
    );
    add({ encode: performance.now() - started });
    telemetry.add(resultAttributes({ ...encoded, width, height }));
    const type = typeLabel(subject, plan.typeLevel);
    return { encoded, width, height, foreground: box, type, stages };
  };
