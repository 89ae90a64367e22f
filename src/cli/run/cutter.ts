import { UserError } from '../../errors.ts';
import type { OptionParser } from '../../geometry/optionParser.ts';
import { roiParser } from '../../geometry/roi.ts';
import { type SubjectPrompt, saysNothing, subjectPointsParser } from '../../geometry/subjectPrompt.ts';
import type { SizeName } from '../../image/size.ts';
import type { RunFormat } from './results.ts';

/** What is asked for every image. */
export interface Wanted {
  readonly size: SizeName;
  /** WebP without loss. */
  readonly lossless: boolean;
  /** File of an image that says where the subject is (docs/contract.md section 4.1). */
  readonly mask?: Uint8Array | undefined;
  /** `subject_points` and `subject_box` of the contract, and what they say. */
  readonly points?: string | undefined;
  readonly box?: string | undefined;
  readonly prompt?: SubjectPrompt | undefined;
}

export interface CutoutFile {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly creditsCharged: number;
  /** The chance that a person has to look at the result, 0 to 1; -1: not known. */
  readonly uncertainty: number;
  /** The key under which a server charges the image once; absent without a server. */
  readonly idempotencyKey?: string;
}

/** Cuts out images: this process, or a server. */
export interface Cutter {
  /** Images to be cut out at a time. */
  readonly jobs: number;
  /**
   * Rejects with RunError if no other image can succeed either; with UserError or AppError, which say why, for
   * this image alone; soon after an abort with the reason of `signal`.
   */
  cut(image: Uint8Array, format: RunFormat, signal: AbortSignal): Promise<CutoutFile>;
  close(): Promise<void>;
}

function read<T>(name: string, text: string, { parse, expected, examples }: OptionParser<T>): T {
  const value = parse(text.trim());
  if (value === undefined)
    throw new UserError(`${name} must be ${expected}: for example "${examples[0]}", not "${text}".`);
  return value;
}

/** Throws UserError for texts that say nothing usable; undefined without any. */
export function promptOf(points: string | undefined, box: string | undefined): SubjectPrompt | undefined {
  if (points === undefined && box === undefined) return undefined;
  const prompt = {
    points: points === undefined ? [] : read('--point', points, subjectPointsParser),
    ...(box !== undefined && { box: read('--box', box, roiParser) }),
  };
  if (saysNothing(prompt)) throw new UserError('--point needs a point that is in the subject, or --box.');
  return prompt;
}
