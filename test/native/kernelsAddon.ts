import type { Box, DropShadow, ComposePlan as EnginePlan } from '../../src/engine/types.ts';
import { onEveryLevel } from './levels.ts';

export type { DropShadow };

/** Straight RGBA rows, `stride` bytes apart. */
export interface Image {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly stride: number;
}

export interface NetworkInput {
  readonly width: number;
  readonly height: number;
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
}

export interface MatteSummary {
  readonly box: Box;
  readonly foregroundPixels: number;
  readonly opaque: boolean;
}

/** For the argument `threads`: selects the scalar version, which serves as oracle. */
export const SCALAR = -1;

/** As the engine's, but the background may have a stride. */
export interface ComposePlan extends Omit<EnginePlan, 'background'> {
  readonly background?: Image;
}

/** A connected component of a map; `foreground` counts the network pixels of at least one half. */
export interface Component {
  readonly area: number;
  readonly foreground: number;
  readonly low: number;
  readonly high: number;
}

/** matte/uncertainty.h */
interface Uncertainty {
  readonly whole: number;
  readonly patches: number;
}

/** Input of a network: colour = plane * scale + offset in 0..1, planes r, g, b of width * height. */
export interface Guide {
  readonly planes: Float32Array;
  readonly width: number;
  readonly height: number;
  readonly scale: number;
  readonly offset: number;
  /** Confidence of the colour samples, for each network pixel. */
  readonly sampleConfidence?: Float32Array;
  /** Their alpha; only with `sampleConfidence`. */
  readonly sampledAlpha?: Float32Array;
}

/** A mask of the subject: 255 in, 0 out, others undecided. */
export interface NativeMask {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** native/image, native/matte and native/pipeline/compose as exported by test/native/{kernels,components,matte,compose}.cc. */
export interface KernelAddon {
  fillNetworkInput(image: Image, spec: NetworkInput, threads: number): Float32Array;
  /** Changes image.data. */
  reduceInPlace(image: Image, width: number, height: number, threads: number): void;
  reduceScalar(image: Image, width: number, height: number): Uint8Array;
  /** Changes the buffer, in which an image starts at byte `offset`. */
  enlargeInPlace(
    buffer: Uint8Array,
    width: number,
    height: number,
    toWidth: number,
    toHeight: number,
    threads: number,
    offset: number,
    stride: number,
  ): void;
  enlargeScalar(image: Image, width: number, height: number): Uint8Array;
  /** Changes image.data. */
  applyMatte(
    image: Image,
    p: Float32Array,
    pWidth: number,
    pHeight: number,
    roi: Box,
    hidden: 'clear' | 'keep',
    threads: number,
  ): MatteSummary;
  /** Changes p, a map of `width` columns, inside the area. */
  filterComponents(
    p: Float32Array,
    width: number,
    area: Box,
    threads: number,
  ): { readonly removed: number; readonly filled: number };
  /** Runs are [y, begin, end, component]. */
  findComponents(
    p: Float32Array,
    width: number,
    area: Box,
    least: number,
    most: number,
    neighbours: 4 | 8,
    threads: number,
  ): { readonly components: readonly Component[]; readonly runs: readonly (readonly number[])[] };
  uncertainty(
    p: Float32Array,
    width: number,
    area: Box,
    threads: number,
  ): Uncertainty & { readonly secondLook: boolean };
  hasFlatBorder(image: Image): boolean;
  /** Changes p, a map of `width` columns about the whole image. */
  restoreColouredHoles(p: Float32Array, width: number, image: Image, threads: number): void;
  isSurer(second: Uncertainty, first: Uncertainty): boolean;
  /** Changes p, of `width` columns, which covers `view` of an image. */
  constrain(
    p: Float32Array,
    width: number,
    mask: NativeMask,
    view: Box,
    image: { readonly width: number; readonly height: number },
    threads: number,
  ): void;
  /** Changes p, of `width` columns, which covers the whole image. */
  restoreMarked(
    p: Float32Array,
    width: number,
    constrained: Float32Array,
    mask: NativeMask,
    threads: number,
  ): void;
  maskView(mask: NativeMask, width: number, height: number): Box;
  sharedView(first: NativeMask, mask: NativeMask, width: number, height: number, grid: number): Box;
  networkArea(roi: Box, width: number, height: number, pWidth: number, pHeight: number): Box;
  /** Changes image.data. */
  refine(
    image: Image,
    guide: Guide,
    p: Float32Array,
    roi: Box,
    hidden: 'clear' | 'keep',
    threads: number,
  ): MatteSummary;
  blurOf(p: Float32Array, width: number, height: number, threads: number): number;
  refineMatte(image: Image, guide: Guide, p: Float32Array, threads: number): MatteSummary;
  sampleColours(
    guide: Guide,
    p: Float32Array,
    threads: number,
  ): {
    readonly alpha: Float32Array;
    readonly sampleConfidence: Float32Array;
    readonly sampledAlpha: Float32Array;
  };
  deblurMatte(
    guide: Guide,
    p: Float32Array,
    threads: number,
  ): { readonly alpha: Float32Array; readonly confidence: Float32Array; readonly uncertain: Float32Array };
  /** Planes of the foreground's r, g, b and the background's r, g, b. */
  estimateColours(guide: Guide, alpha: Float32Array, threads: number): Float32Array;
  /** Four numbers for each network pixel of columns left .. left + width - 1, channel after channel of each row. */
  localModel(guide: Guide, alpha: Float32Array, left: number, width: number, scalar: boolean): Float32Array;
  resizePlane(
    plane: Float32Array,
    width: number,
    height: number,
    toWidth: number,
    toHeight: number,
    threads: number,
  ): Float32Array;
  /** Changes the buffer: the image at its front becomes the canvas at its front. */
  composeCanvas(
    buffer: Uint8Array,
    width: number,
    plan: ComposePlan,
    threads: number,
  ): { readonly box: Box; readonly opaque: boolean };
  /** Composites layers under a canvas whose image has been placed; changes image.data. */
  composeScalar(canvas: Image, subject: Box, plan: ComposePlan): void;
  /** Strength of the shadow at every pixel of the canvas. */
  shadow(canvas: Image, subject: Box, shadow: DropShadow, threads: number): Float32Array;
  shadowExtent(subject: Box, shadow: DropShadow): Box;
}

export function loadKernels(): KernelAddon {
  // The oracles are separate functions, or selected by the last argument.
  const isOracle = (name: string, given: readonly unknown[]) =>
    name.endsWith('Scalar') || given.at(-1) === SCALAR || given.at(-1) === true;
  return onEveryLevel((addon) => addon, isOracle) as KernelAddon;
}
