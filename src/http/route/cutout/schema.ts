import type { CutoutRequest, Source } from '../../../cutout/request.ts';
import { fail } from '../../../errors.ts';
import { choice, readFields, same } from '../../field.ts';
import type { Form } from '../../form.ts';

/** The options, in the order in which they are checked (CONTRACT section 4). */
export const fields = {
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
      fallback: 'preview',
      invalid: 'invalid_size',
      description: 'Largest size of the result. Pictures are never enlarged.',
    },
  ),
  type: choice(
    {
      ...same('auto', 'person', 'product', 'car', 'animal', 'graphic', 'transportation', 'other'),
      graphics: 'graphic',
      car_interior: 'car',
      car_part: 'car',
    },
    {
      fallback: 'auto',
      invalid: 'invalid_type',
      description: 'Kind of subject; auto finds it out.',
    },
  ),
  type_level: choice(
    { none: 'none', 1: '1', 2: '2', latest: '2' },
    {
      fallback: '1',
      invalid: 'invalid_type_level',
      description: 'How finely X-Type tells the kind of subject.',
    },
  ),
  format: choice(
    { ...same('auto', 'png', 'jpg', 'webp', 'zip'), jpeg: 'jpg' },
    {
      fallback: 'auto',
      invalid: 'invalid_format',
      description: 'auto is PNG when any pixel of the result is not fully opaque, otherwise JPG.',
    },
  ),
  channels: choice(same('rgba', 'alpha'), {
    fallback: 'rgba',
    invalid: 'invalid_channels',
    description: 'alpha gives only the matte, as a gray picture.',
  }),
} as const;

function readSource(form: Form): Source {
  const file = form.files.get('image_file');
  const base64 = form.text.get('image_file_b64');
  const url = form.text.get('image_url');
  const given = [
    ...(file ? ['image_file'] : []),
    ...(base64 === undefined ? [] : ['image_file_b64']),
    ...(url === undefined ? [] : ['image_url']),
  ];
  if (given.length > 1) throw fail('multiple_sources', { detail: `Received: ${given.join(', ')}.` });
  if (file) return { kind: 'bytes', bytes: file.data };
  if (base64 !== undefined) return { kind: 'base64', text: base64 };
  if (url !== undefined) return { kind: 'url', url };
  throw fail('missing_source');
}

/** The one request that everything after it is a function of. */
export function parseCutout(form: Form): CutoutRequest {
  const source = readSource(form);
  const { type_level: typeLevel, ...options } = readFields(fields, form);
  return Object.freeze({ source, ...options, typeLevel });
}
