import { UserError } from '../../errors.ts';
import type { OptionParser } from '../../geometry/optionParser.ts';
import { roiParser } from '../../geometry/roi.ts';
import { type SubjectPrompt, saysNothing, subjectPointsParser } from '../../geometry/subjectPrompt.ts';

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
