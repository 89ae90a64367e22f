import type { Provider } from '../engine/types.ts';
import { ModelError } from './error.ts';
import type { Precision } from './layout.ts';
import type { Manifest } from './manifest.ts';

/** Values of CUTOUT_PRECISION. */
const PRECISION_WISHES = ['auto', 'fp32', 'int8'] as const;
type PrecisionWish = (typeof PRECISION_WISHES)[number];

/** Instructions for dot products of 8-bit integers with 32-bit sums, named as in native/core/cpu.h. */
const DOT_PRODUCTS: readonly string[] = ['amx_int8', 'avx512_vnni', 'avx_vnni', 'i8mm', 'asimddp'];

/** The first instruction set of a processor that makes an 8-bit network worthwhile. */
export const dotProductOf = (instructionSets: readonly string[]): string | undefined =>
  instructionSets.find((name) => DOT_PRODUCTS.includes(name));

export interface PrecisionChoice {
  readonly precision: Precision;
  /** The reason in a word, for example "avx512_vnni". */
  readonly because: string;
  /** What the operator should know about an explicit choice. */
  readonly warning?: string;
}

export interface PrecisionQuestion {
  readonly device: Provider;
  readonly wish: PrecisionWish;
  /** Of this processor (NativeModule.versions). */
  readonly instructionSets: readonly string[];
}

/**
 * Chooses the number format of a network for a device. GPU: float16 where published, else float32. CPU: int8
 * if the network has a scale table and the processor has dot-product instructions, else float32; without
 * those, pairs of products saturate at 16 bits and nothing is gained (docs/decisions/0109). Throws ModelError
 * `model_unsupported` for a wish that cannot be met.
 */
export function choosePrecision(
  manifest: Manifest,
  { device, wish, instructionSets }: PrecisionQuestion,
): PrecisionChoice {
  if (device !== 'cpu') {
    if (wish === 'auto') return { precision: manifest.file.precision, because: `the device ${device}` };
    throw new ModelError(
      'model_unsupported',
      `CUTOUT_PRECISION=${wish} is for the device cpu: on ${device}, leave it at auto.`,
    );
  }
  const dotProduct = dotProductOf(instructionSets);
  if (wish === 'fp32') return { precision: 'fp32', because: 'CUTOUT_PRECISION=fp32' };
  if (wish === 'int8') {
    if (manifest.int8 === undefined) {
      throw new ModelError(
        'model_unsupported',
        `The network ${manifest.name} has no 8-bit form: set CUTOUT_PRECISION to auto or fp32.`,
      );
    }
    const because = 'CUTOUT_PRECISION=int8';
    if (dotProduct) return { precision: 'int8', because };
    const warning =
      'This processor has no 8-bit dot product: mattes can be worse and runs slower than with CUTOUT_PRECISION=fp32.';
    return { precision: 'int8', because, warning };
  }
  if (manifest.int8 === undefined) return { precision: 'fp32', because: 'no 8-bit form of this network' };
  if (!dotProduct) return { precision: 'fp32', because: 'no 8-bit dot product in this processor' };
  return { precision: 'int8', because: dotProduct };
}

/** Number formats a network can be prepared in for a device, the default first. */
export function precisionsOf(manifest: Manifest, device: Provider): readonly Precision[] {
  if (device !== 'cpu') return [manifest.file.precision];
  return manifest.int8 === undefined ? ['fp32'] : ['fp32', 'int8'];
}
