import type { Description, FormSchema, Schema } from './description.ts';

/** The options of the API as controls, derived from its published description: new fields appear without a change here. */

export interface Option {
  readonly name: string;
  readonly description: string;
  readonly kind: 'choice' | 'flag' | 'text' | 'file';
  /** Values of a choice, without aliases. */
  readonly choices: readonly string[];
  readonly fallback: string;
  readonly example: string;
}

export interface OptionGroup {
  readonly title: string;
  readonly options: readonly Option[];
}

export const endpoint = '/v1.0/cutout';

/** Fields of the image itself, which has its own controls, and files as text, which the page sends as files. */
const sources = ['image_file', 'image_file_b64', 'image_url', 'mask_file_b64'];

const groups: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['Result', ['size', 'format', 'channels', 'type', 'type_level', 'semitransparency']],
  ['Subject', ['subject_points', 'subject_box', 'mask_file']],
  ['Background', ['bg_color', 'bg_image_file', 'bg_image_url']],
  ['Crop and place', ['roi', 'crop', 'crop_margin', 'scale', 'position']],
  ['Shadow', ['add_shadow', 'shadow_type', 'shadow_opacity']],
];

function option(name: string, schema: Schema): Option {
  const words = (schema.enum ?? []).map(String);
  const flag = words.length > 0 && words.every((word) => ['0', '1', 'true', 'false'].includes(word));
  const aliases = schema['x-aliases'] ?? {};
  const kind = flag ? 'flag' : words.length > 0 ? 'choice' : schema.contentMediaType ? 'file' : 'text';
  return {
    name,
    description: (schema.description ?? '').replace(' Case-insensitive.', ''),
    kind,
    choices: flag ? [] : words.filter((word) => !(word in aliases)),
    fallback: schema.default === undefined ? '' : String(schema.default),
    example: (schema.examples ?? []).map(String).join('   '),
  };
}

/** `shadow_type[person]`, … from the pattern `^shadow_type\[(person|…)\]$`. */
function perSubject([pattern, schema]: readonly [string, Schema]): Option[] {
  const match = /^\^(\w+)\\\[\(([\w|]+)\)\\\]\$$/.exec(pattern);
  const [, name, kinds] = match ?? [];
  if (!name || !kinds) return [];
  return kinds.split('|').map((kind) => option(`${name}[${kind}]`, schema));
}

const formOf = ({ paths }: Description): FormSchema =>
  paths[endpoint]?.post?.requestBody?.content['multipart/form-data']?.schema ?? {};

/** Accepted formats and limits of the image, in the words of the description. */
export const imageHint = (description: Description): string =>
  formOf(description).properties?.['image_file']?.description ?? '';

export function optionGroups(description: Description): OptionGroup[] {
  const form = formOf(description);
  const all = Object.entries(form.properties ?? {})
    .filter(([name]) => !sources.includes(name))
    .map(([name, schema]) => option(name, schema));
  const named = new Set(groups.flatMap(([, names]) => names));
  const found = groups.map(([title, names]) => ({
    title,
    options: names.flatMap((name) => all.filter((each) => each.name === name)),
  }));
  const more = [
    { title: 'More', options: all.filter(({ name }) => !named.has(name)) },
    {
      title: 'Shadow by kind of subject',
      options: Object.entries(form.patternProperties ?? {}).flatMap(perSubject),
    },
  ];
  return [...found, ...more].filter(({ options }) => options.length > 0);
}
