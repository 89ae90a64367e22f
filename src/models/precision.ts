import type { Form, Precision } from '../compiler/form.ts';
import type { Provider } from '../engine/types.ts';
import { unsupported } from './error.ts';
import { floatFormFor } from './locate.ts';
import type { Manifest } from './manifest.ts';

/** Values of CUTOUT_PRECISION. */
type PrecisionSetting = 'auto' | 'fp32' | 'int8' | 'bf16';

/** Instructions for dot products of 8-bit integers with 32-bit sums, named as in native/core/cpu.h. */
const DOT_PRODUCTS: readonly string[] = ['amx_int8', 'avx512_vnni', 'avx_vnni', 'i8mm', 'asimddp'];

/** Instruction sets for dot products of bf16. */
const BF16: readonly string[] = ['amx_bf16', 'avx512_bf16'];

/** Instruction sets that `auto` takes Cutout's operators for (decision 0212, 0213). */
const FASTER_OPERATORS: readonly string[] = ['amx_int8', 'avx512_vnni', ...BF16];

/** Cutout's operators that make 8 bits worthwhile without dot products (decision 0215). */
const WITHOUT_DOT_PRODUCTS: readonly string[] = ['avx512', 'avx2'];

/** Largest mean difference from floats at which `auto` takes bf16. */
const BF16_DIFFERENCE = 0.002;

/** Returns the first instruction set of a processor that makes an 8-bit network worthwhile. */
export const dotProductOf = (instructionSets: readonly string[]): string | undefined =>
  instructionSets.find((name) => DOT_PRODUCTS.includes(name));

export interface PrecisionChoice {
  readonly precision: Precision;
  /** Instruction set of Cutout's operators for the part in 8 bits or bf16; undefined: ONNX Runtime's operators. */
  readonly operators?: string;
  /** What the network is prepared as for a GPU. */
  readonly form?: Form;
  /** The reason in a word, for example "avx512_vnni". */
  readonly because: string;
  /** What the operator should know about an explicit choice. */
  readonly warning?: string;
}

export interface PrecisionQuestion {
  readonly device: Provider;
  readonly requested: PrecisionSetting;
  /** CUTOUT_OPERATORS: auto, the faster ones as measured; off, ONNX Runtime's; or Cutout's for this instruction set. */
  readonly requestedOperators: string;
  /** Of this processor (NativeModule.versions). */
  readonly instructionSets: readonly string[];
  /** Those that Cutout has operators for, best first (NativeModule.versions). */
  readonly operators: readonly string[];
}

/** Returns what the settings ask for on this processor. */
export const questionOf = (
  settings: { device: Provider; precision: PrecisionSetting; operators: string },
  { instructionSets, operators }: Pick<PrecisionQuestion, 'instructionSets' | 'operators'>,
): PrecisionQuestion => ({
  device: settings.device,
  requested: settings.precision,
  requestedOperators: settings.operators,
  instructionSets,
  operators,
});

/** Returns what a network is prepared as for a choice. */
export const formFor = ({
  precision,
  operators,
  form,
}: Pick<PrecisionChoice, 'precision' | 'operators' | 'form'>): Form =>
  form ?? (precision === 'int8' && operators !== undefined ? 'int8-operators' : precision);

/** Returns who computes the part in 8 bits or bf16, for a person; undefined where there is none. */
export function operatorsText({ precision, operators }: PrecisionChoice): string | undefined {
  if (precision !== 'int8' && precision !== 'bf16') return undefined;
  return operators === undefined ? "ONNX Runtime's operators" : `Cutout's operators for ${operators}`;
}

/** Returns those of Cutout's operators on this processor that compute in a precision, best first. */
export const operatorsOf = (precision: Precision, operators: readonly string[]): readonly string[] =>
  precision === 'int8' || precision === 'bf16'
    ? operators.filter((name) => BF16.includes(name) === (precision === 'bf16'))
    : [];

/** Returns those that `auto` takes on a processor; undefined: ONNX Runtime's, or floats. */
export function fasterOperators(
  precision: Precision,
  { instructionSets, operators }: Pick<PrecisionQuestion, 'instructionSets' | 'operators'>,
): string | undefined {
  const plain = dotProductOf(instructionSets) === undefined;
  const faster = plain ? [...FASTER_OPERATORS, ...WITHOUT_DOT_PRODUCTS] : FASTER_OPERATORS;
  return operatorsOf(precision, operators).find((name) => faster.includes(name));
}

/** Returns what the operator should know about kernels that failed their check; undefined where none did. */
export const refusedText = ({ refusedOperators }: { readonly refusedOperators: readonly string[] }) =>
  refusedOperators.length === 0
    ? undefined
    : `Cutout's operators for ${refusedOperators.join(', ')} compute wrongly on this processor and are not used; please report it.`;

/** Throws ModelError for operators that this processor cannot run, or not in this precision. */
function chooseOperators(
  { operators, requestedOperators, instructionSets }: PrecisionQuestion,
  precision: 'int8' | 'bf16',
): { operators?: string } {
  if (requestedOperators === 'off') return {};
  const known = operatorsOf(precision, operators);
  const best = fasterOperators(precision, { instructionSets, operators });
  if (requestedOperators === 'auto') return best === undefined ? {} : { operators: best };
  if (known.includes(requestedOperators)) return { operators: requestedOperators };
  const other = operators.includes(requestedOperators) ? `precision than ${precision}` : 'processor';
  throw unsupported(
    `CUTOUT_OPERATORS=${requestedOperators} is for another ${other}: here it can be ${['auto', 'off', ...known].join(', ')}.`,
  );
}

/** Returns Cutout's operators in bf16, which are all there are. Throws ModelError without any. */
function bf16Choice(question: PrecisionQuestion, because: string): PrecisionChoice {
  const chosen = chooseOperators(question, 'bf16');
  if (chosen.operators !== undefined) return { precision: 'bf16', because, ...chosen };
  const reason =
    question.requestedOperators === 'off'
      ? 'needs operators of Cutout: set CUTOUT_OPERATORS to auto, or'
      : 'needs a processor with dot products of bf16 (AMX or AVX-512 BF16):';
  throw unsupported(`CUTOUT_PRECISION=bf16 ${reason} set CUTOUT_PRECISION to auto or fp32.`);
}

/** Whether bf16 is good and fast enough to be taken without being asked for. */
function takesBf16({ bf16 }: Manifest, { operators, requestedOperators }: PrecisionQuestion): boolean {
  const named = requestedOperators === 'auto' || BF16.includes(requestedOperators);
  return named && bf16 !== undefined && bf16 <= BF16_DIFFERENCE && operatorsOf('bf16', operators).length > 0;
}

const replacesDotProducts = ({ requestedOperators }: PrecisionQuestion): boolean =>
  requestedOperators === 'auto' || WITHOUT_DOT_PRODUCTS.includes(requestedOperators);

/**
 * Chooses the number format of a network for a device. GPU: float16 where published, else float32. CPU: int8
 * if the network has a scale table and the processor has dot-product instructions, or AVX2 or AVX-512 for Cutout's operators;
 * ONNX Runtime gains nothing without dot products (decision 0109). Else bf16 if the processor has its dot
 * products and the network was measured to lose little, else float32. Cutout's own operators where the processor has a
 * kernel for them that is faster (decision 0212, 0213). Throws ModelError `MODEL_UNSUPPORTED` for a setting that
 * cannot be met.
 */
export function choosePrecision(manifest: Manifest, question: PrecisionQuestion): PrecisionChoice {
  const { device, requested, instructionSets } = question;
  if (device !== 'cpu') {
    if (requested === 'auto') {
      const form = floatFormFor(manifest, device);
      return {
        precision: form === 'fp32' ? form : manifest.file.precision,
        form,
        because: `the device ${device}`,
      };
    }
    throw unsupported(`CUTOUT_PRECISION=${requested} is for the device cpu: on ${device}, leave it at auto.`);
  }
  const dotProduct = dotProductOf(instructionSets);
  if (requested === 'fp32') return { precision: 'fp32', because: 'CUTOUT_PRECISION=fp32' };
  if (requested === 'int8') {
    if (manifest.int8 === undefined) {
      throw unsupported(
        `The network ${manifest.name} has no 8-bit form: set CUTOUT_PRECISION to auto or fp32.`,
      );
    }
    const because = 'CUTOUT_PRECISION=int8';
    const operators = chooseOperators(question, 'int8');
    if (dotProduct || operators.operators !== undefined) return { precision: 'int8', because, ...operators };
    const warning =
      "This processor has no 8-bit dot product: with ONNX Runtime's operators 8 bits are not faster than CUTOUT_PRECISION=fp32, and less exact.";
    return { precision: 'int8', because, warning };
  }
  if (requested === 'bf16') return bf16Choice(question, 'CUTOUT_PRECISION=bf16');
  if (manifest.int8 === undefined && takesBf16(manifest, question)) {
    return bf16Choice(question, 'no 8-bit form of this network');
  }
  if (manifest.int8 === undefined) return { precision: 'fp32', because: 'no 8-bit form of this network' };
  if (dotProduct) return { precision: 'int8', because: dotProduct, ...chooseOperators(question, 'int8') };
  const { operators } = replacesDotProducts(question) ? chooseOperators(question, 'int8') : {};
  if (operators === undefined) {
    return { precision: 'fp32', because: 'no 8-bit dot product in this processor' };
  }
  return { precision: 'int8', because: operators, operators };
}

/**
 * Chooses the number format of the encoder or decoder of subject points, which run on the CPU beside the network that
 * CUTOUT_PRECISION is for: bf16 where that was measured to lose little, or for the encoder where it says so; float32
 * where it says so.
 */
export function chooseSelectorPrecision(manifest: Manifest, question: PrecisionQuestion): PrecisionChoice {
  const named =
    question.requested === 'fp32' || (question.requested === 'bf16' && manifest.role === 'encoder');
  const requested = named ? question.requested : 'auto';
  return choosePrecision(manifest, { ...question, device: 'cpu', requested });
}

/** Forms a network can be prepared in for a device, the default first. */
export function formsOf(manifest: Manifest, device: Provider, operators: readonly string[]): readonly Form[] {
  if (device !== 'cpu') return [floatFormFor(manifest, device)];
  const has = (precision: Precision) => operatorsOf(precision, operators).length > 0;
  return [
    'fp32',
    ...(manifest.bf16 !== undefined && has('bf16') ? (['bf16'] as const) : []),
    ...(manifest.int8 !== undefined && has('int8') ? (['int8-operators'] as const) : []),
    ...(manifest.int8 === undefined ? [] : (['int8'] as const)),
  ];
}
