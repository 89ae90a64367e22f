import type { Provider } from '../engine/types.ts';
import { ModelError } from './error.ts';
import type { Form, Precision } from './layout.ts';
import type { Manifest } from './manifest.ts';

/** Values of CUTOUT_PRECISION. */
const PRECISION_SETTINGS = ['auto', 'fp32', 'int8'] as const;
type PrecisionSetting = (typeof PRECISION_SETTINGS)[number];

/** CUTOUT_OPERATORS: the faster operators as measured, ONNX Runtime's, or Cutout's for a named instruction set. */
export type OperatorsSetting = 'auto' | 'off' | 'amx_int8' | 'avx512_vnni' | 'avx_vnni';

/** Instructions for dot products of 8-bit integers with 32-bit sums, named as in native/core/cpu.h. */
const DOT_PRODUCTS: readonly string[] = ['amx_int8', 'avx512_vnni', 'avx_vnni', 'i8mm', 'asimddp'];

/** Instruction sets for which Cutout's operators were measured to be faster than ONNX Runtime's (docs/decisions/0212). */
const FASTER_OPERATORS: readonly string[] = ['amx_int8', 'avx512_vnni'];

/** The first instruction set of a processor that makes an 8-bit network worthwhile. */
export const dotProductOf = (instructionSets: readonly string[]): string | undefined =>
  instructionSets.find((name) => DOT_PRODUCTS.includes(name));

export interface PrecisionChoice {
  readonly precision: Precision;
  /** Instruction set of Cutout's operators for the 8-bit part; undefined: ONNX Runtime's operators. */
  readonly operators?: string;
  /** The reason in a word, for example "avx512_vnni". */
  readonly because: string;
  /** What the operator should know about an explicit choice. */
  readonly warning?: string;
}

export interface PrecisionQuestion {
  readonly device: Provider;
  readonly requested: PrecisionSetting;
  readonly requestedOperators: OperatorsSetting;
  /** Of this processor (NativeModule.versions). */
  readonly instructionSets: readonly string[];
  /** Those that Cutout has operators for, best first (NativeModule.versions). */
  readonly operators: readonly string[];
}

/** What a network is prepared as for a choice. */
export const formFor = ({ precision, operators }: Pick<PrecisionChoice, 'precision' | 'operators'>): Form =>
  precision === 'int8' && operators !== undefined ? 'int8-operators' : precision;

/** Who computes the 8-bit part, for a person; undefined where there is none. */
export function operatorsText({ precision, operators }: PrecisionChoice): string | undefined {
  if (precision !== 'int8') return undefined;
  return operators === undefined ? "ONNX Runtime's operators" : `Cutout's operators for ${operators}`;
}

/** Throws ModelError for operators that this processor cannot run. */
function chooseOperators({ operators, requestedOperators }: PrecisionQuestion): { operators?: string } {
  if (requestedOperators === 'off') return {};
  const best = operators.find((name) => FASTER_OPERATORS.includes(name));
  if (requestedOperators === 'auto') return best === undefined ? {} : { operators: best };
  if (operators.includes(requestedOperators)) return { operators: requestedOperators };
  throw new ModelError(
    'model_unsupported',
    `CUTOUT_OPERATORS=${requestedOperators} is for another processor: here it can be ${['auto', 'off', ...operators].join(', ')}.`,
  );
}

/**
 * Chooses the number format of a network for a device. GPU: float16 where published, else float32. CPU: int8
 * if the network has a scale table and the processor has dot-product instructions, else float32; without
 * those, pairs of products saturate at 16 bits and nothing is gained (docs/decisions/0109). For int8, Cutout's own
 * operators where the processor has a kernel for them (docs/decisions/0212). Throws ModelError
 * `model_unsupported` for a setting that cannot be met.
 */
export function choosePrecision(manifest: Manifest, question: PrecisionQuestion): PrecisionChoice {
  const { device, requested, instructionSets } = question;
  if (device !== 'cpu') {
    if (requested === 'auto') return { precision: manifest.file.precision, because: `the device ${device}` };
    throw new ModelError(
      'model_unsupported',
      `CUTOUT_PRECISION=${requested} is for the device cpu: on ${device}, leave it at auto.`,
    );
  }
  const dotProduct = dotProductOf(instructionSets);
  if (requested === 'fp32') return { precision: 'fp32', because: 'CUTOUT_PRECISION=fp32' };
  if (requested === 'int8') {
    if (manifest.int8 === undefined) {
      throw new ModelError(
        'model_unsupported',
        `The network ${manifest.name} has no 8-bit form: set CUTOUT_PRECISION to auto or fp32.`,
      );
    }
    const because = 'CUTOUT_PRECISION=int8';
    if (dotProduct) return { precision: 'int8', because, ...chooseOperators(question) };
    const warning =
      'This processor has no 8-bit dot product: mattes can be worse and runs slower than with CUTOUT_PRECISION=fp32.';
    return { precision: 'int8', because, warning, ...chooseOperators(question) };
  }
  if (manifest.int8 === undefined) return { precision: 'fp32', because: 'no 8-bit form of this network' };
  if (!dotProduct) return { precision: 'fp32', because: 'no 8-bit dot product in this processor' };
  return { precision: 'int8', because: dotProduct, ...chooseOperators(question) };
}

/** Forms a network can be prepared in for a device, the default first. */
export function formsOf(manifest: Manifest, device: Provider, operators: readonly string[]): readonly Form[] {
  if (device !== 'cpu') return [manifest.file.precision];
  if (manifest.int8 === undefined) return ['fp32'];
  return operators.length === 0 ? ['fp32', 'int8'] : ['fp32', 'int8-operators', 'int8'];
}
