import { onEveryLevel } from './levels.ts';

export interface PngOptions {
  readonly alphaOnly: boolean;
  readonly effort: number;
  readonly icc?: Uint8Array;
  readonly pixelsPerMetre?: readonly [number, number];
}

/** native/png as exported by test/native/png.cc. */
export interface PngAddon {
  encodePng(
    pixels: Uint8Array,
    width: number,
    height: number,
    stride: number,
    options: PngOptions,
    threads: number,
    stopped: boolean,
  ): Buffer;
  deflate(parts: readonly Uint8Array[], effort: number, row: number, pixel: number): Buffer;
  deflateBound(size: number): number;
  crc32(bytes: Uint8Array, crc: number, scalar: boolean): number;
  adler32(bytes: Uint8Array, adler: number, scalar: boolean): number;
  adler32Combine(first: number, second: number, secondSize: number): number;
  filterRow(
    filter: number,
    row: Uint8Array,
    above: Uint8Array,
    pixel: number,
    scalar: boolean,
  ): { readonly residuals: Buffer; readonly sum: number };
  zeroMargins(row: Uint8Array, above: Uint8Array): readonly [number, number];
  codeLengths(counts: Uint32Array, limit: number): Buffer;
}

export function loadPng(): PngAddon {
  return onEveryLevel((addon) => addon['png'] as object) as PngAddon;
}
