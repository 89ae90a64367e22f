import { createRequire } from 'node:module';
import type { Box } from '../../src/engine/types.ts';

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

/** Where a function takes `threads`, this asks for the scalar oracle instead. */
export const SCALAR = -1;

/** native/image and native/matte as test/native/kernels.cc opens them. */
export interface KernelAddon {
  fillNetworkInput(image: Image, spec: NetworkInput, threads: number): Float32Array;
  /** Changes image.data; the message of the error, empty if there was none. */
  reduceInPlace(image: Image, width: number, height: number, threads: number): string;
  reduceScalar(image: Image, width: number, height: number): Uint8Array;
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
}

export function loadKernels(): KernelAddon {
  return createRequire(import.meta.url)('../../../native/Release/cutout_test.node') as KernelAddon;
}
