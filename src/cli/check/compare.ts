import { shown } from '../httpResponse.ts';
import type { Observation, Planes } from './observe.ts';
import type { CheckRequest } from './requests.ts';

/**
 * `contract`: a client can notice it. `other`: what services may decide themselves, for example the subject's type, the
 * price or the wording.
 */
export interface Difference {
  readonly request: string;
  readonly kind: 'contract' | 'other';
  readonly what: string;
  readonly here: string;
  readonly there: string;
}

/** Mean differences in levels of 255; absent where there is nothing to compare. */
export interface Means {
  readonly alpha?: number;
  readonly colour?: number;
}

/** Mattes whose mean difference is below this are the same subject. */
const sameSubject = 0.05 * 255;
/** Results whose mean difference is above this do not show the same. */
const anotherResult = 0.1 * 255;
/** Sides of cropped results differ by the mattes; above this share the option has another effect. */
const anotherSide = 0.1;

const absent = 'absent';

/** Headers of a result, as they are named in the list of differences. `values`: whether their values are the contract. */
const groups: readonly {
  readonly name: string;
  readonly headers: readonly string[];
  readonly values: boolean;
}[] = [
  { name: 'X-Type', headers: ['X-Type'], values: false },
  { name: 'X-Width, X-Height', headers: ['X-Width', 'X-Height'], values: true },
  { name: 'X-Max-Width, X-Max-Height', headers: ['X-Max-Width', 'X-Max-Height'], values: true },
  { name: 'X-Credits-Charged', headers: ['X-Credits-Charged'], values: false },
  {
    name: 'X-Foreground-*',
    headers: ['Top', 'Left', 'Width', 'Height'].map((side) => `X-Foreground-${side}`),
    values: false,
  },
  {
    name: 'X-RateLimit-*',
    headers: ['Limit', 'Remaining', 'Reset'].map((part) => `X-RateLimit-${part}`),
    values: false,
  },
];

/** Groups whose values change from request to request. */
const volatile: ReadonlySet<string> = new Set(['X-RateLimit-*', 'X-Foreground-*']);

const valuesOf = ({ headers }: Observation, names: readonly string[]) =>
  names.map((name) => headers.get(name));

const textOf = (values: readonly (string | null)[]) =>
  values.every((value) => value === null)
    ? absent
    : values.map((value) => (value === null ? absent : shown(value))).join(' ');

function meanOf(one: Uint8Array, other: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += Math.abs((one[i] ?? 0) - (other[i] ?? 0));
  return sum / Math.max(1, one.length);
}

/** Mean over the red, green and blue values. */
function colourMean(one: Uint8Array, other: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) if ((i & 3) !== 3) sum += Math.abs((one[i] ?? 0) - (other[i] ?? 0));
  return sum / Math.max(1, 0.75 * one.length);
}

const sameSize = (one: Planes, other: Planes) => one.width === other.width && one.height === other.height;

export function meansOf({ planes: one }: Observation, { planes: other }: Observation): Means {
  if (!one || !other || !sameSize(one, other)) return {};
  if (one.alpha && other.alpha) return { alpha: meanOf(one.alpha, other.alpha) };
  return one.alpha || other.alpha ? {} : { colour: colourMean(one.rgba, other.rgba) };
}

/** Whether the mattes of the plain request show the same subject, so that options can be compared by their effect. */
export const isSameSubject = ({ alpha }: Means): boolean => alpha !== undefined && alpha < sameSubject;

const sizeText = ({ image }: Observation) => (image ? `${image.width}x${image.height}` : absent);

const farApart = (one: number, other: number) => Math.abs(one - other) > anotherSide * Math.max(one, other);

/** What differs between the answers to a request. `effects`: whether mattes agree well enough to compare effects. */
export function compare(
  { name: request, cropped, drawn }: Pick<CheckRequest, 'name' | 'cropped' | 'drawn'>,
  here: Observation,
  there: Observation,
  means: Means,
  effects: boolean,
): Difference[] {
  const found: Difference[] = [];
  const say = (kind: Difference['kind'], what: string, one: string, other: string) => {
    if (one !== other) found.push({ request, kind, what, here: one, there: other });
  };
  say('contract', 'status', String(here.status), String(there.status));
  if (here.status !== there.status) {
    const reason = ({ error }: Observation) => (error ? `${error.codes}: ${error.titles}` : 'a result');
    say('other', 'answer', reason(here), reason(there));
    return found;
  }
  say('contract', 'Content-Type', shown(here.contentType) || absent, shown(there.contentType) || absent);
  if (here.error && there.error) {
    say('contract', 'error code', here.error.codes, there.error.codes);
    say('contract', 'keys of the error', here.error.shape, there.error.shape);
    say('other', 'error title', here.error.titles, there.error.titles);
    return found;
  }
  for (const { name, headers, values } of groups) {
    const [one, other] = [valuesOf(here, headers), valuesOf(there, headers)];
    const complete = (all: readonly (string | null)[]) => all.every((value) => value !== null);
    if (complete(one) !== complete(other)) {
      const [mine, theirs] = volatile.has(name)
        ? [present(one), present(other)]
        : [textOf(one), textOf(other)];
      say('contract', name, mine, theirs);
    } else if (!volatile.has(name)) {
      const free = !values || (cropped && name === 'X-Width, X-Height');
      say(free ? 'other' : 'contract', name, textOf(one), textOf(other));
    }
  }
  say('contract', 'parts', here.parts ?? absent, there.parts ?? absent);
  say('contract', 'readable', here.unreadable ?? 'yes', there.unreadable ?? 'yes');
  const [one, other] = [here.image, there.image];
  if (!one || !other) return found;
  say('contract', 'image format', one.format, other.format);
  say('contract', 'channels', one.channels, other.channels);
  if (!cropped) say('contract', 'size', sizeText(here), sizeText(there));
  else {
    const far = farApart(one.width, other.width) || farApart(one.height, other.height);
    say(far && effects ? 'contract' : 'other', 'size', sizeText(here), sizeText(there));
  }
  const most = Math.max(means.alpha ?? 0, means.colour ?? 0);
  if (most > anotherResult)
    say(
      effects && !drawn ? 'contract' : 'other',
      'picture',
      'this one',
      `differs by ${most.toFixed(0)} of 255 on average`,
    );
  return found;
}

const present = (values: readonly (string | null)[]) =>
  values.every((value) => value !== null)
    ? 'present'
    : values.some((value) => value !== null)
      ? 'in part'
      : absent;
