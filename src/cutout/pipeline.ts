import type { Tier } from '../billing/price.ts';
import type { Engine } from '../engine/engine.ts';
import type { Box, ComposePlan } from '../engine/types.ts';
import { fail } from '../errors.ts';
import type { Colour } from '../geometry/colour.ts';
import { type Composition, composition, isIdentity } from '../geometry/compose.ts';
import type { Subject } from '../geometry/shadow.ts';
import { decodeCover } from '../image/cover.ts';
import { decode } from '../image/decode.ts';
import { assertFits, type Encoded, encode, resolveFormat } from '../image/encode.ts';
import { fromSrgb } from '../image/icc.ts';
import type { Dimensions, JobLimits, Probe, Raster } from '../image/types.ts';
import type { RequestTelemetry, Stages } from '../ops/telemetry.ts';
import { lacksSubject, makePlan, type Plan } from './plan.ts';
import type { NetworkSize, Profile } from './profile.ts';
import type { CutoutRequest } from './request.ts';

export interface PipelineParts {
  readonly engine: Pick<Engine, 'matte' | 'compose' | 'encodePng'>;
  /** The loaded network and the size of its input. */
  readonly network: NetworkSize & { readonly name: string };
  readonly profile: Profile;
  /** Whether the engine can find subject types out; if not, `auto` is `other`. */
  readonly subjectTypes: boolean;
  /** Seconds after which libvips gives up on an image; 0 = never. */
  readonly timeout: number;
}

export interface PipelineCall {
  readonly signal: AbortSignal;
  /** Hears of the work while it goes on, so also of work that fails later. */
  readonly telemetry: RequestTelemetry;
}

export interface PipelineResult extends Dimensions {
  readonly encoded: Encoded;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  /** Its kind, named or found. */
  readonly subject: Subject;
  readonly stages: Stages;
}

/** An image as it was sent, and what its header says. */
export interface Input {
  readonly bytes: Uint8Array;
  readonly probe: Probe;
}

export interface Inputs {
  readonly image: Input;
  readonly background: Input | undefined;
}

/** From the uploads to the encoded result, in one buffer. */
export type Pipeline = (
  request: CutoutRequest,
  inputs: Inputs,
  tier: Tier,
  call: PipelineCall,
) => Promise<PipelineResult>;

/** The same pixels in a buffer that holds a canvas of this size too. */
function roomFor({ width, height }: Dimensions, image: Raster): Raster {
  const needed = width * height * 4;
  if (image.data.length >= needed) return image;
  const data = new Uint8Array(needed);
  data.set(image.data.subarray(0, image.width * image.height * 4));
  return { ...image, data };
}

/** A colour of sRGB as the pixels of an image with this profile say it. */
function inProfile(colour: Colour, icc: Uint8Array | undefined): Colour {
  const [red, green, blue, alpha] = colour;
  const converted = icc && fromSrgb(icc)?.colour([red, green, blue]);
  return converted ? [...converted, alpha] : colour;
}

/** What lies behind the subject, for a canvas of this size, in the colours of the image's own profile. */
async function behind(
  request: CutoutRequest,
  plan: Plan,
  { image, background }: Inputs,
  canvas: Dimensions,
  jobLimits: JobLimits,
): Promise<Pick<ComposePlan, 'colour' | 'background'>> {
  const { icc } = image.probe;
  if (plan.background === 'colour' && request.background.kind === 'colour')
    return { colour: inProfile(request.background.colour, icc) };
  if (plan.background === 'image' && background) {
    const { bytes, probe } = background;
    return { background: await decodeCover(bytes, probe, canvas, { ...jobLimits, ...(icc && { icc }) }) };
  }
  return {};
}

export const createPipeline =
  ({ engine, network, profile, subjectTypes, timeout }: PipelineParts): Pipeline =>
  async (request, inputs, tier, { signal, telemetry }) => {
    let stages: Stages = {};
    const add = (more: Stages) => {
      stages = { ...stages, ...more };
      telemetry.ended(more);
    };

    // 1. Plan: every size but that of a crop is known before a pixel is decoded. A small enough subject fits any
    // format with the widest margins, so of a crop nothing can be refused before its subject is known.
    const { bytes, probe: source } = inputs.image;
    const plan = makePlan(request, tier, source, network, profile);
    const { result, hiddenColour, input, roi } = plan;
    const { pngEffort, refine } = profile;
    if (!request.crop) assertFits(request.format, result);
    const jobLimits = { signal, timeoutSeconds: timeout };

    // 2. Decode to one straight RGBA8 buffer; everything below happens in it.
    let started = performance.now();
    const decoded = await decode(bytes, source, plan.decode, jobLimits);
    add({ decode: performance.now() - started });

    // 3. Matte and kind of subject: off this thread; the image's pixels end up at the start of the buffer.
    const ask = plan.subject === 'ask' && subjectTypes;
    const matte = await engine.matte(
      decoded,
      {
        network: network.name,
        ...result,
        hiddenColour,
        input,
        refine,
        ...(roi && { roi }),
        ...(ask && { subject: true }),
      },
      { signal },
    );
    const { queueMs, prepareMs, inferMs, subjectMs, matteMs } = matte;
    add({
      queue: queueMs,
      prepare: prepareMs,
      infer: inferMs,
      ...(ask && { subject: subjectMs }),
      matte: matteMs,
    });
    const named = plan.subject === 'ask' || plan.subject === 'untold' ? undefined : plan.subject;
    const subject = named ?? matte.subject?.type ?? 'other';
    telemetry.add({ runs: matte.runs, ...(matte.subject && { type: subject }) });
    const area = roi ?? result;
    if (lacksSubject(matte.foregroundPixels, area.width * area.height)) throw fail('unknown_foreground');

    // 4. Compose: crop, scale and position, shadow, background.
    const shadowOpacity = plan.shadowOpacity[subject];
    const composed = composition(result, matte.box, { ...plan.geometry, shadowOpacity });
    const { width, height } = composed;
    assertFits(request.format, composed);
    let image: Raster = { ...decoded, ...result };
    let { box, opaque } = matte;
    if (plan.background !== 'none' || !isIdentity(result, composed)) {
      started = performance.now();
      const layers = await behind(request, plan, inputs, composed, jobLimits);
      image = roomFor(composed, image);
      ({ box, opaque } = await engine.compose(image, { ...planOf(composed), ...layers }, { signal }));
      add({ compose: performance.now() - started });
    }

    // 5. Encode.
    started = performance.now();
    const { channels } = request;
    const raster = { data: image.data.subarray(0, width * height * 4), width, height };
    const format = resolveFormat(request.format, { width, height, opaque, channels });
    const { icc, density } = source;
    const encoded = await encode(
      raster,
      { format, channels, opaque, pngEffort, ...jobLimits, ...(icc && { icc }), ...(density && { density }) },
      (pixels, options) => engine.encodePng(pixels, options, { signal }),
    );
    add({ encode: performance.now() - started });
    telemetry.add({
      result: `${width}x${height} ${format}`,
      resultPixels: width * height,
      resultBytes: encoded.bytes.length,
    });
    return { encoded, width, height, foreground: box, subject, stages };
  };

const planOf = ({ subject: _, ...plan }: Composition): ComposePlan => plan;
