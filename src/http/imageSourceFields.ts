import type { Source } from '../cutout/request.ts';
import { fail } from '../errors.ts';
import { type Form, maxUrlLength } from './form.ts';
import type { RouteField } from './routeFields.ts';

export const sourceFields: readonly (readonly [string, RouteField])[] = [
  ['image_file', { file: true }],
  ['image_file_b64', {}],
  ['image_url', {}],
];

/** The address in a field, if given. Throws the field's error if it is too long. */
export function parseUrl(form: Form, field: 'image_url' | 'bg_image_url'): string | undefined {
  const url = form.text.get(field);
  if (url === undefined || url.length <= maxUrlLength) return url;
  const detail = `The address has more than ${maxUrlLength} characters.`;
  throw fail(`invalid_${field}`, { detail });
}

/** Its one source (docs/contract.md section 3). Throws `missing_source`, `multiple_sources`, `invalid_image_url`. */
export function parseSource(form: Form): Source {
  const given = sourceFields
    .map(([name]) => name)
    .filter((name) => form.files.has(name) || form.text.has(name));
  if (given.length > 1) throw fail('multiple_sources', { detail: `Received: ${given.join(', ')}.` });
  const file = form.files.get('image_file');
  const base64 = form.text.get('image_file_b64');
  if (file) return { kind: 'bytes', bytes: file.data };
  if (base64 !== undefined) return { kind: 'base64', text: base64 };
  const url = parseUrl(form, 'image_url');
  if (url !== undefined) return { kind: 'url', url };
  throw fail('missing_source');
}
