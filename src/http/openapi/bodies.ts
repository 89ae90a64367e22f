import { z } from 'zod';
import { catalogue, type ErrorId } from '../../errors.ts';
import { subjectNames } from '../../geometry/shadow.ts';
import { contractLimits } from '../../image/types.ts';
import type { Option } from '../option.ts';
import { cutoutFields } from '../route/cutout/schema.ts';
import { improveFields } from '../route/improve/route.ts';
import type { RouteField, RouteFields } from '../routeFields.ts';

/** A JSON Schema (draft 2020-12). */
export interface Schema extends z.core.JSONSchema.BaseSchema {
  properties?: Properties;
  patternProperties?: Properties;
  /** Other spellings of words of `enum`, and what they mean. */
  'x-aliases'?: Readonly<Record<string, unknown>>;
  /** Error codes for an invalid value of this field. */
  'x-error-codes'?: readonly string[];
}

export type Properties = Record<string, Schema>;

const text = (description: string, more: Schema = {}): Schema => ({
  type: 'string',
  description,
  ...more,
});

const errors = (...ids: readonly ErrorId[]): Schema => ({
  'x-error-codes': [...new Set(ids.map((id) => catalogue[id].code))],
});

/** Errors of an image, whichever way it is sent. */
const imageErrors = [
  'file_too_large',
  'invalid_file_type',
  'invalid_dimensions',
  'resolution_too_high',
  'failed_to_read_image',
] as const;

const image = (description: string) =>
  text(description, { contentMediaType: 'application/octet-stream', ...errors(...imageErrors) });

const subjects = [...new Set(subjectNames.values())].join('|');

/** Errors of options whose text is valid. */
const furtherErrors: Readonly<Partial<Record<ErrorId, readonly ErrorId[]>>> = {
  invalid_roi: ['roi_exceeds_bounds', 'roi_region_empty'],
  invalid_subject_points: ['multiple_subject_sources', 'subject_selection_unavailable'],
  invalid_subject_box: ['multiple_subject_sources', 'subject_selection_unavailable'],
};

/** The text of a field, valid in every content type. */
function textSchema({ schema, description, expected, invalid, perSubject }: Option<unknown>): Schema {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input' }) as Schema;
  const grammar = json.enum ? 'Case-insensitive.' : `Expected ${expected}.`;
  const each = perSubject ? ' May also be given for each kind of subject.' : '';
  return {
    ...json,
    description: `${description} ${grammar}${each}`,
    ...errors(invalid, ...(furtherErrors[invalid] ?? [])),
  };
}

/** Describes an option in JSON, where numbers and booleans stand for their text, and one per subject may be an object. */
function jsonSchema(field: Option<unknown>): Schema {
  const { description, default: fallback, 'x-error-codes': codes, ...plain } = textSchema(field);
  const words = [...(plain.enum ?? []), ...(plain.examples ?? [])].map(String);
  const others: Schema[] = [];
  if (field.number || words.some((word) => /^\d+(\.\d+)?$/.test(word))) others.push({ type: 'number' });
  if (field.list) others.push({ type: 'array', items: { type: ['string', 'number'] } });
  if (words.includes('true')) others.push({ type: 'boolean' });
  if (field.perSubject)
    others.push({
      type: 'object',
      patternProperties: { [`^(${subjects})$`]: plain },
      additionalProperties: false,
    });
  return {
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
    ...(codes && { 'x-error-codes': codes }),
    ...(others.length === 0 ? plain : { anyOf: [plain, ...others] }),
  };
}

const maskErrors = errors('multiple_masks', 'invalid_mask_file', 'mask_shape_mismatch', 'file_too_large');

/** The fields that are no options, by name. */
const otherFields: Properties = {
  image_file: image(
    `JPEG, PNG, WebP, HEIC or AVIF, at most ${contractLimits.maxBytes / 1024 ** 2} MB and ${contractLimits.maxPixels / 1e6} megapixels.`,
  ),
  image_file_b64: text(
    'The image in base64: standard or URL-safe alphabet, white space and a leading data:…;base64, are ignored.',
    { contentEncoding: 'base64', ...errors(...imageErrors) },
  ),
  image_url: text(
    'URL of the image; http or https, on a public host, port 80 or 443 unless the operator set others. An installation may download from listed hosts only, or not at all.',
    { format: 'uri', ...errors('invalid_image_url', 'failed_image_download', ...imageErrors) },
  ),
  bg_image_file: image('Background image; it is scaled to cover the canvas.'),
  bg_image_url: text('URL of a background image, with the rules of image_url.', {
    format: 'uri',
    ...errors('invalid_bg_image_url', 'failed_bg_download', ...imageErrors),
  }),
  mask_file: text(
    'Says where the subject is: white is in it, black out of it, gray left to the network. An image with transparency, for example an earlier result, counts by its alpha. Proportions of the upright image, any size. The edge is refined from the image.',
    { contentMediaType: 'application/octet-stream', ...maskErrors },
  ),
  mask_file_b64: text('The mask of mask_file in base64, as image_file_b64.', {
    contentEncoding: 'base64',
    ...maskErrors,
  }),
  image_filename: text('File name of the image; only its last part is stored.', { maxLength: 255 }),
  tag: text('Groups images.', { maxLength: 255 }),
};

/** Body of one operation in the three content types. Unknown fields are ignored. */
export interface Bodies {
  readonly multipart: Schema;
  readonly urlencoded: Schema;
  readonly json: Schema;
}

const isOption = (field: RouteField): field is Option<unknown> => 'schema' in field;

function schemaOf(name: string, field: RouteField, ofOption: (option: Option<unknown>) => Schema): Schema {
  const schema = isOption(field) ? ofOption(field) : otherFields[name];
  if (!schema) throw new TypeError(`${name} is described nowhere.`);
  return schema;
}

function bodiesOf(fields: RouteFields): Bodies {
  const all = [...fields];
  const texts = all.filter(([, { file }]) => !file);
  /** `shadow_type[person]` and the like. */
  const perSubject = texts.flatMap(([name, field]) =>
    isOption(field) && field.perSubject ? [[`^${name}\\[(${subjects})\\]$`, textSchema(field)] as const] : [],
  );
  const object = (of: typeof all, ofOption = textSchema): Schema => ({
    type: 'object',
    properties: Object.fromEntries(of.map(([name, field]) => [name, schemaOf(name, field, ofOption)])),
    ...(perSubject.length > 0 && { patternProperties: Object.fromEntries(perSubject) }),
  });
  return { multipart: object(all), urlencoded: object(texts), json: object(texts, jsonSchema) };
}

export const cutoutBodies = bodiesOf(cutoutFields);
export const improveBodies = bodiesOf(improveFields);
