import type { Tier } from '../billing/price.ts';
import type { Engine } from '../engine/engine.ts';
import type { Box } from '../engine/types.ts';
import { fail } from '../errors.ts';
import { decode } from '../image/decode.ts';
import { assertFits, type Encoded, encode, resolveFormat } from '../image/encode.ts';
import type { Dimensions, Probe } from '../image/types.ts';
import { lacksSubject, makePlan } from './plan.ts';
import type { CutoutRequest } from './request.ts';

export interface WorkParts {
  readonly engine: Pick<Engine, 'matte' | 'encodePng'>;
  /** The loaded network and the size of its input. */
  readonly network: Dimensions & { readonly name: string };
  /** Seconds after which libvips gives up on a picture; 0 = never. */
  readonly timeout: number;
}

/** Milliseconds of each stage, in the order of the stages. */
export type Stages = Readonly<
  Partial<Record<'decode' | 'queue' | 'prepare' | 'infer' | 'matte' | 'compose' | 'encode', number>>
>;

export interface WorkCall {
  readonly signal: AbortSignal;
  /** Takes what the request's line in the log should say; also called when the work fails later. */
  readonly note: (facts: Readonly<Record<string, unknown>>) => void;
}

export interface Done extends Dimensions {
  readonly encoded: Encoded;
  /** Box of the subject in the result. */
  readonly foreground: Box;
  readonly stages: Stages;
}

const pngEffort = 3;

/** From the upload to the encoded result, in one buffer. */
export type Work = (
  request: CutoutRequest,
  bytes: Uint8Array,
  source: Probe,
  tier: Tier,
  call: WorkCall,
) => Promise<Done>;

export const createWork =
  ({ engine, network, timeout }: WorkParts): Work =>
  async (request, bytes, source, tier, { signal, note }) => {
    let stages: Stages = {};
    const add = (more: Stages) => {
      stages = { ...stages, ...more };
      const rounded = Object.entries(more).map(([stage, ms]) => [`${stage}Ms`, Math.round(ms)]);
      note(Object.fromEntries(rounded));
    };

    // 1. Plan: every size is known before a pixel is decoded.
    const plan = makePlan(request, tier, source, network);
    assertFits(request.format, plan.result);
    const { width, height } = plan.result;
    const patience = { signal, timeoutSeconds: timeout };

    // 2. Decode to one straight RGBA8 buffer; everything below happens in it.
    let started = performance.now();
    const picture = await decode(bytes, source, plan.decode, patience);
    add({ decode: performance.now() - started });

    // 3. Matte: off this thread; the result's pixels end up at the start of the buffer.
    const matte = await engine.matte(
      picture,
      { network: network.name, width, height, hiddenColour: plan.hiddenColour },
      { signal },
    );
    const { queueMs, prepareMs, inferMs, matteMs, foregroundPixels, opaque } = matte;
    add({ queue: queueMs, prepare: prepareMs, infer: inferMs, matte: matteMs });
    if (lacksSubject(foregroundPixels, width * height)) throw fail('unknown_foreground');

    // 4. Encode.
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
    add({ encode: performance.now() - started });
    note({ result: `${width}x${height} ${format}` });
    return { encoded, width, height, foreground: matte.box, stages };
  };
