import type { Raster } from '../../image/types.ts';
import { type Answer, freeFacts } from './answer.ts';
import type { CheckRequest } from './requests.ts';

/** A request and what two services answered. */
export interface Row {
  readonly request: string;
  readonly here: Answer;
  readonly there: Answer;
  /** `matters`: a client can notice it; services may decide the rest themselves. */
  readonly differences: readonly (Readonly<Record<'what' | 'here' | 'there', string>> & {
    matters: boolean;
  })[];
  /** Mean difference of the images, of 255. */
  readonly mean?: number;
}

/** Mattes whose mean difference is below this show the same subject, results above that do not show the same. */
export const sameSubject = 0.05 * 255;
const anotherResult = 0.1 * 255;
/** Share of a side above which the sizes of cropped results differ by more than their mattes do. */
const anotherSide = 0.1;

const isTransparent = ({ data }: Raster) => data.some((value, index) => (index & 3) === 3 && value < 255);

/** The mean difference of two images of one size in levels of 255: of alpha, or of the colours if both are opaque. */
function meanDifference(one: Raster, other: Raster): number {
  const ofAlpha = isTransparent(one) || isTransparent(other);
  let sum = 0;
  for (let i = 0; i < one.data.length; i++)
    if (((i & 3) === 3) === ofAlpha) sum += Math.abs((one.data[i] ?? 0) - (other.data[i] ?? 0));
  return sum / (one.width * one.height * (ofAlpha ? 1 : 3));
}

const farApart = (one: number, other: number) => Math.abs(one - other) > anotherSide * Math.max(one, other);

const sizeOf = ({ width, height }: Raster) => `${width}x${height}`;

/** What differs between two answers. `isSame`: their images show one subject. */
export function compare({ name, fields }: CheckRequest, here: Answer, there: Answer, isSame: boolean): Row {
  const differences: Row['differences'][number][] = [];
  const row = { request: name, here, there, differences };
  const say = (what: string, one = 'absent', other = 'absent', matters = true) => {
    if (one !== other) differences.push({ what, here: one, there: other, matters });
  };
  const isCropped = 'crop' in fields;
  say('status', String(here.status), String(there.status));
  const isOther = here.status !== there.status;
  for (const what of Object.keys({ ...here.facts, ...there.facts })) {
    const [one, other] = [here.facts[what], there.facts[what]];
    // An error and a result have nothing else in common.
    if (isOther && !what.startsWith('error ')) continue;
    const isFree = freeFacts.has(what);
    if (isFree && (one === undefined || other === undefined)) continue;
    const isSize = isCropped && ['X-Width', 'X-Height'].includes(what);
    say(what, one, other, !isOther && !isSize && !isFree);
  }
  const [one, other] = [here.image, there.image];
  if (!one || !other) return row;
  const isFar = farApart(one.width, other.width) || farApart(one.height, other.height);
  say('size', sizeOf(one), sizeOf(other), !isCropped || (isSame && isFar));
  if (sizeOf(one) !== sizeOf(other)) return row;
  const mean = meanDifference(one, other);
  // Shadows may be drawn differently.
  const matters = isSame && !('add_shadow' in fields);
  if (mean > anotherResult && here.facts['channels'] === there.facts['channels'])
    say('image', 'this one', `differs by ${mean.toFixed(0)} of 255`, matters);
  return { ...row, mean };
}
