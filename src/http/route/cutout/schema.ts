import type { Background, CutoutRequest, MaskSource, RequestedSubjectType } from '../../../cutout/request.ts';
import { fail } from '../../../errors.ts';
import { isFetchable } from '../../../fetch/download.ts';
import { type Colour, colourParser } from '../../../geometry/colour.ts';
import { cropMarginParser, noMargin } from '../../../geometry/crop.ts';
import { type Position, positionParser, type Scale, scaleParser } from '../../../geometry/place.ts';
import { type Roi, roiParser, wholeImage } from '../../../geometry/roi.ts';
import { shadowOpacityParser, shadowTypeParser, subjectNames } from '../../../geometry/shadow.ts';
import {
  maxSubjectPoints,
  type PromptPoint,
  type SubjectPrompt,
  saysNothing,
  subjectPointsParser,
} from '../../../geometry/subjectPrompt.ts';
import { type SizeName, sizeLimits } from '../../../image/size.ts';
import type { Form } from '../../form.ts';
import { parseSource, parseUrl, sourceFields } from '../../imageSourceFields.ts';
import { choice, flag, perSubject, readOptions, same, text } from '../../option.ts';
import type { RouteField, RouteFields } from '../../routeFields.ts';

const transparent: Colour = [0, 0, 0, 0];

const megapixels = (size: SizeName) => sizeLimits[size] / 1e6;

/** The options, in the order in which they are checked (docs/contract.md section 4). */
export const cutoutOptions = {
  size: choice(
    {
      preview: 'preview',
      small: 'preview',
      regular: 'preview',
      medium: 'medium',
      hd: 'hd',
      full: 'full',
      '4k': 'full',
      '50MP': '50MP',
      auto: 'auto',
    },
    {
      unset: 'preview',
      invalid: 'invalid_size',
      description: `Largest size of the result: preview (small, regular) ${megapixels('preview')} megapixels, medium ${megapixels('medium')}, hd ${megapixels('hd')}, full (4k) ${megapixels('full')}, 50MP ${megapixels('50MP')}. Images are never enlarged. auto is full if the account can pay for it, else preview.`,
    },
  ),
  type: choice<RequestedSubjectType>(
    { auto: 'auto', ...Object.fromEntries(subjectNames) },
    {
      unset: 'auto',
      invalid: 'invalid_type',
      description: 'Kind of subject; auto detects it.',
    },
  ),
  type_level: choice(
    { none: 'none', 1: '1', 2: '2', latest: '2' },
    {
      unset: '1',
      invalid: 'invalid_type_level',
      description: 'Level of detail of the header X-Type; none omits the header.',
    },
  ),
  format: choice(
    { ...same('auto', 'png', 'jpg', 'webp', 'avif', 'zip'), jpeg: 'jpg' },
    {
      unset: 'auto',
      invalid: 'invalid_format',
      description:
        'auto is PNG when any pixel of the result is not fully opaque, otherwise JPG. JPG has no transparency: without a background the subject is placed on white. zip contains color.jpg and alpha.png.',
    },
  ),
  lossless: flag('false', {
    invalid: 'invalid_lossless',
    description: 'WebP without loss of colour: larger files. Counts with format=webp only.',
  }),
  channels: choice(same('rgba', 'alpha'), {
    unset: 'rgba',
    invalid: 'invalid_channels',
    description: 'alpha returns only the alpha matte, as a grayscale image.',
  }),
  roi: text(roiParser, {
    fallback: wholeImage,
    unset: '0% 0% 100% 100%',
    invalid: 'invalid_roi',
    description:
      'Region of interest "x1 y1 x2 y2" of the upright input: only pixels inside it can be foreground.',
    list: true,
  }),
  subject_points: text<readonly PromptPoint[]>(subjectPointsParser, {
    fallback: [],
    invalid: 'invalid_subject_points',
    description: `Points of the upright input that say which subject is meant: "x y; x y", with a minus before a point that is not in it; at most ${maxSubjectPoints}.`,
  }),
  subject_box: text<Roi | undefined>(roiParser, {
    fallback: undefined,
    invalid: 'invalid_subject_box',
    description: 'Box "x1 y1 x2 y2" around the subject that is meant, in the upright input.',
    list: true,
  }),
  crop: flag('false', {
    invalid: 'invalid_crop',
    description: 'Crops the result to the subject. Does not change the price.',
  }),
  crop_margin: text(cropMarginParser, {
    fallback: noMargin,
    unset: '0',
    invalid: 'invalid_crop_margin',
    description:
      'Margin around a cropped subject, in pixels of the result or percent of the subject; at most 500px or 50% a side.',
    number: 'px',
    list: true,
  }),
  scale: text<Scale>(scaleParser, {
    fallback: 'original',
    unset: 'original',
    invalid: 'invalid_scale',
    description: 'Share of the canvas that the subject is scaled to fit into.',
    number: '%',
  }),
  position: text<Position | undefined>(positionParser, {
    fallback: undefined,
    invalid: 'invalid_position',
    description:
      'Position of the subject on the canvas: 0% touches the left or top edge, 100% the right or bottom. Default: original, center when scale is a percentage.',
    number: '%',
    list: true,
  }),
  add_shadow: flag('false', {
    invalid: 'invalid_add_shadow',
    description: 'Adds a drop shadow. shadow_type takes precedence.',
  }),
  shadow_type: perSubject(shadowTypeParser, {
    invalid: 'invalid_shadow_type',
    description:
      'Kind of shadow. car and 3D are accepted and not drawn; auto chooses by the kind of subject.',
  }),
  shadow_opacity: perSubject(shadowOpacityParser, {
    invalid: 'invalid_shadow_opacity',
    description: 'Peak opacity of the shadow in percent. Default: 90 for cars, 50 for others.',
  }),
  semitransparency: flag('true', {
    invalid: 'invalid_semitransparency',
    description: 'Validated, without effect.',
  }),
  bg_color: text<Colour>(colourParser, {
    fallback: transparent,
    invalid: 'invalid_bg_color',
    description: 'Colour of the background; with 4 or 8 digits it is semi-transparent.',
  }),
} as const;

export const cutoutFields: RouteFields = new Map<string, RouteField>([
  ...sourceFields,
  ...Object.entries(cutoutOptions),
  ['bg_image_url', {}],
  ['bg_image_file', { file: true }],
  ['mask_file', { file: true }],
  ['mask_file_b64', {}],
]);

const backgroundFields = ['bg_color', 'bg_image_url', 'bg_image_file'];

/** Throws `multiple_bg_sources` if more than one of the three is given, whatever their values. */
function checkBackgrounds({ text: texts, files }: Form): void {
  const given = backgroundFields.filter((name) => texts.has(name) || files.has(name));
  if (given.length > 1) throw fail('multiple_bg_sources', { detail: `Received: ${given.join(', ')}.` });
}

function readBackground(form: Form, colour: Colour): Background {
  const file = form.files.get('bg_image_file');
  if (file) return { kind: 'image', source: { kind: 'bytes', bytes: file.data } };
  const url = parseUrl(form, 'bg_image_url');
  if (url === undefined) return colour[3] === 0 ? { kind: 'none' } : { kind: 'colour', colour };
  if (!isFetchable(url)) throw fail('invalid_bg_image_url');
  return { kind: 'image', source: { kind: 'url', url } };
}

function readMask({ text: texts, files }: Form): MaskSource | undefined {
  const file = files.get('mask_file');
  const base64 = texts.get('mask_file_b64');
  if (file && base64 !== undefined) throw fail('multiple_masks');
  if (file) return { kind: 'bytes', bytes: file.data };
  return base64 === undefined ? undefined : { kind: 'base64', text: base64 };
}

/** Refuses points and boxes beside a mask, whatever their values. */
function checkPrompts({ text: texts }: Form, mask: MaskSource | undefined): void {
  const given = ['subject_points', 'subject_box'].filter((name) => texts.has(name));
  if (mask && given.length > 0)
    throw fail('multiple_subject_sources', { detail: `Received: a mask and ${given.join(' and ')}.` });
}

function promptOf(points: readonly PromptPoint[], box: Roi | undefined): SubjectPrompt | undefined {
  if (points.length === 0 && !box) return undefined;
  const prompt = { points, ...(box && { box }) };
  if (saysNothing(prompt))
    throw fail('invalid_subject_points', {
      detail: 'Every point is one that is not in the subject. Give at least one that is, or subject_box.',
    });
  return prompt;
}

/** Parses a form into the frozen request that everything after it depends on. */
export function parseCutout(form: Form): CutoutRequest {
  const source = parseSource(form);
  checkBackgrounds(form);
  const mask = readMask(form);
  checkPrompts(form, mask);
  const options = readOptions(cutoutOptions, form);
  const prompt = promptOf(options.subject_points, options.subject_box);
  const { size, type, format, channels, roi, crop, scale, position } = options;
  return Object.freeze({
    source,
    size,
    type,
    typeLevel: options.type_level,
    format,
    lossless: format === 'webp' && options.lossless,
    channels,
    roi,
    crop,
    cropMargin: crop ? options.crop_margin : noMargin,
    scale,
    position,
    shadow: {
      addShadow: options.add_shadow,
      shadowType: options.shadow_type,
      shadowOpacity: options.shadow_opacity,
    },
    background: readBackground(form, options.bg_color),
    ...(mask && { mask }),
    ...(prompt && { prompt }),
  });
}
