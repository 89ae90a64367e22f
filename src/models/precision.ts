import type { Form, Precision } from '../compiler/form.ts';
import type { Provider } from '../engine/types.ts';
import { unsupported } from './error.ts';
import { floatFormFor } from './locate.ts';
import type { Manifest } from './manifest.ts';

/** Values of CUTOUT_PRECISION. */
type PrecisionSetting = 'auto' | 'fp32' | 'int8' | 'bf16';

/** Largest mean difference from floats, on photos, at which `auto` takes bf16. */
const BF16_DIFFERENCE = 0.002;

export interface PrecisionChoice {
  readonly precision: Precision;
  /** Instruction set of Cutout's operators for the part in 8 bits or bf16; undefined: ONNX Runtime's operators. */
  readonly operators?: string;
  /** What the network is prepared as for a GPU. */
  readonly form?: Form;
  /** The reason in a few words, for example "measured: 740 ms of processor time". */
  readonly because: string;
}

export interface PrecisionQuestion {
  readonly device: Provider;
  readonly requested: PrecisionSetting;
  /** CUTOUT_OPERATORS: auto, the faster ones as measured; off, ONNX Runtime's; or Cutout's for this instruction set. */
  readonly requestedOperators: string;
  /** Instruction sets of this processor that Cutout has operators for, best first (NativeModule.versions). */
  readonly operators: readonly string[];
}

/** Returns what the settings ask for on this processor. */
export const questionOf = (
  settings: { device: Provider; precision: PrecisionSetting; operators: string },
  { operators }: Pick<PrecisionQuestion, 'operators'>,
): PrecisionQuestion => ({
  device: settings.device,
  requested: settings.precision,
  requestedOperators: settings.operators,
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
export function operatorsText({
  precision,
  operators,
}: Pick<PrecisionChoice, 'precision' | 'operators'>): string | undefined {
  if (precision !== 'int8' && precision !== 'bf16') return undefined;
  return operators === undefined ? "ONNX Runtime's operators" : `Cutout's operators for ${operators}`;
}

/** Returns those of Cutout's operators on this processor that compute in a precision, best first. */
export const operatorsOf = (precision: Precision, operators: readonly string[]): readonly string[] =>
  precision === 'int8' || precision === 'bf16'
    ? operators.filter((name) => name.endsWith('_bf16') === (precision === 'bf16'))
    : [];

/** Returns what the operator should know about kernels that failed their check; undefined where none did. */
export const refusedText = ({ refusedOperators }: { readonly refusedOperators: readonly string[] }) =>
  refusedOperators.length === 0
    ? undefined
    : `Cutout's operators for ${refusedOperators.join(', ')} compute wrongly on this processor and are not used; please report it.`;

/** Returns Cutout's operators, undefined for ONNX Runtime's. Throws ModelError for those that are not for this processor or precision. */
function chooseOperators(
  { operators, requestedOperators }: PrecisionQuestion,
  precision: 'int8' | 'bf16',
): string | undefined {
  if (requestedOperators === 'off') return undefined;
  const known = operatorsOf(precision, operators);
  if (requestedOperators === 'auto') return known[0];
  if (known.includes(requestedOperators)) return requestedOperators;
  const other = operators.includes(requestedOperators) ? `precision than ${precision}` : 'processor';
  throw unsupported(
    `CUTOUT_OPERATORS=${requestedOperators} is for another ${other}: here it can be ${['auto', 'off', ...known].join(', ')}.`,
  );
}

/** Ways to compute a network, the one that is usual first. */
export type Choices = readonly [PrecisionChoice, ...PrecisionChoice[]];

/** Those in 8 bits: Cutout's operators for the best instruction set or the named one, ONNX Runtime's unless one is named. */
function inEightBits(question: PrecisionQuestion, because: string): Choices {
  const operators = chooseOperators(question, 'int8');
  const standard = { precision: 'int8', because } as const;
  if (operators === undefined) return [standard];
  const own = { ...standard, operators };
  return question.requestedOperators === 'auto' ? [own, standard] : [own];
}

/** The one in bf16, which Cutout's operators alone compute. Throws ModelError without any. */
function inBf16(question: PrecisionQuestion, because: string): PrecisionChoice {
  const operators = chooseOperators(question, 'bf16');
  if (operators !== undefined) return { precision: 'bf16', because, operators };
  const reason =
    question.requestedOperators === 'off'
      ? 'needs operators of Cutout: set CUTOUT_OPERATORS to auto, or'
      : 'needs a processor with dot products of bf16 (AMX or AVX-512 BF16):';
  throw unsupported(`CUTOUT_PRECISION=bf16 ${reason} set CUTOUT_PRECISION to auto or fp32.`);
}

/**
 * Those that `auto` chooses from. A network with a table of 8-bit scales has no need of floats where Cutout has operators for 8
 * bits (decision 0215). Others are in floats, or in bf16 where photos showed that they lose little; where no photos showed
 * anything also in bf16 and in 8 bits by rows (decision 0277), if that agrees with floats.
 */
function admissible({ int8, bf16 }: Manifest, question: PrecisionQuestion): Choices {
  const { requestedOperators, operators } = question;
  const because = 'not measured';
  if (int8 !== undefined) {
    const [first, ...others] = inEightBits(question, because);
    return first.operators === undefined ? [first, { precision: 'fp32', because }] : [first, ...others];
  }
  const floats = { precision: 'fp32', because } as const;
  // Operators that this processor does not have are refused.
  if (!['auto', 'off', ...operators].includes(requestedOperators)) chooseOperators(question, 'int8');
  const only = { ...floats, because: 'the only one of this network here' };
  const own = (precision: 'bf16' | 'int8') =>
    operatorsOf(precision, operators)
      .filter((name, at) => (requestedOperators === 'auto' ? at === 0 : name === requestedOperators))
      .map((name) => ({ precision, because, operators: name }));
  const [half] = own('bf16');
  if (bf16 !== undefined) return half && bf16 <= BF16_DIFFERENCE ? [half, floats] : [only];
  const others = [...own('bf16'), ...own('int8')];
  return others.length > 0 ? [floats, ...others] : [only];
}

/**
 * Returns the number formats that a network may be computed in on a device, of which the fastest is used (choice.ts); the first
 * where none was measured. One that comes after floats must agree with them. GPU: float16 where published, else float32. Throws
 * ModelError `MODEL_UNSUPPORTED` for a setting that cannot be met.
 */
export function precisionChoices(manifest: Manifest, question: PrecisionQuestion): Choices {
  const { device, requested } = question;
  if (device !== 'cpu') {
    if (requested !== 'auto')
      throw unsupported(
        `CUTOUT_PRECISION=${requested} is for the device cpu: on ${device}, leave it at auto.`,
      );
    const form = floatFormFor(manifest, device);
    const precision = form === 'fp32' ? form : manifest.file.precision;
    return [{ precision, form, because: `the device ${device}` }];
  }
  const because = `CUTOUT_PRECISION=${requested}`;
  if (requested === 'fp32') return [{ precision: requested, because }];
  if (requested === 'bf16') return [inBf16(question, because)];
  if (requested === 'auto') return admissible(manifest, question);
  if (manifest.int8 !== undefined) return inEightBits(question, because);
  const operators = chooseOperators(question, 'int8');
  if (operators !== undefined) return [{ precision: requested, because, operators }];
  throw unsupported(
    `The network ${manifest.name} has no table of 8-bit scales, and without Cutout's operators no 8-bit form: set CUTOUT_PRECISION to auto or fp32.`,
  );
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
  return precisionChoices(manifest, { ...question, device: 'cpu', requested })[0];
}
