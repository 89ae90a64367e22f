import type { Raster } from '../../image/types.ts';
import type { Answer } from './answer.ts';
import type { CheckRequest } from './requests.ts';

/** `contract`: a client can notice it. `other`: what services may decide themselves. */
export interface Difference {
  readonly kind: 'contract' | 'other';
  readonly what: string;
  readonly here: string;
  readonly there: string;
}

/** Mattes whose mean difference is below this show the same subject, results above that do not show the same. */
const sameSubject = 0.05 * 255;
const anotherResult = 0.1 * 255;
/** Share of a side above which the sizes of cropped results differ by more than their mattes do. */
const anotherSide = 0.1;

/** Whether the mattes of the plain request show one subject, so that the effects of options can be compared. */
export const isSameSubject = (mean: number | undefined): boolean => mean !== undefined && mean < sameSubject;

const isTransparent = ({ data }: Raster) => data.some((value, index) => (index & 3) === 3 && value < 255);

/** The mean difference of two pictures of one size in levels of 255: of alpha, or of the colours if both are opaque. */
function meanDifference(one: Raster, other: Raster): number {
  const ofAlpha = isTransparent(one) || isTransparent(other);
  let sum = 0;
  for (let i = 0; i < one.data.length; i++)
    if (((i & 3) === 3) === ofAlpha) sum += Math.abs((one.data[i] ?? 0) - (other.data[i] ?? 0));
  return sum / (one.width * one.height * (ofAlpha ? 1 : 3));
}

const farApart = (one: number, other: number) => Math.abs(one - other) > anotherSide * Math.max(one, other);

const sizeOf = ({ width, height }: Raster) => `${width}x${height}`;

/** What an answer is, in a few words. */
export const summaryOf = ({ contract, other, picture }: Answer): string =>
  picture
    ? `${contract['image format']} ${sizeOf(picture)} ${contract['channels']}`
    : (contract['error code'] ??
      other['error title'] ??
      contract['parts'] ??
      contract['Content-Type'] ??
      'nothing');

/** What differs between two answers, and the mean difference of their pictures. `isSame`: they show one subject. */
export function compare(
  { cropped, drawn }: CheckRequest,
  here: Answer,
  there: Answer,
  isSame: boolean,
): { readonly differences: readonly Difference[]; readonly mean?: number } {
  const differences: Difference[] = [];
  const say = (kind: Difference['kind'], what: string, one = 'absent', other = 'absent') => {
    if (one !== other) differences.push({ kind, what, here: one, there: other });
  };
  say('contract', 'status', String(here.status), String(there.status));
  if (here.status !== there.status) return { differences };
  for (const what of Object.keys({ ...here.contract, ...there.contract })) {
    const isFree = cropped && ['X-Width', 'X-Height'].includes(what);
    say(isFree ? 'other' : 'contract', what, here.contract[what], there.contract[what]);
  }
  for (const [what, value] of Object.entries(here.other))
    if (there.other[what] !== undefined) say('other', what, value, there.other[what]);
  const [one, other] = [here.picture, there.picture];
  if (!one || !other) return { differences };
  const isFar = farApart(one.width, other.width) || farApart(one.height, other.height);
  say(cropped && !(isSame && isFar) ? 'other' : 'contract', 'size', sizeOf(one), sizeOf(other));
  if (sizeOf(one) !== sizeOf(other)) return { differences };
  const mean = meanDifference(one, other);
  if (mean > anotherResult && here.contract['channels'] === there.contract['channels'])
    say(
      isSame && !drawn ? 'contract' : 'other',
      'picture',
      'this one',
      `differs by ${mean.toFixed(0)} of 255`,
    );
  return { differences, mean };
}
