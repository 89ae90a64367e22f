import type { CutoutRequest } from '../../../cutout/request.ts';
import { choice, readFields, same } from '../../field.ts';
import type { Form } from '../../form.ts';
import { readSource } from '../../source.ts';

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

/** The one request that everything after it is a function of. */
export function parseCutout(form: Form): CutoutRequest {
  const source = readSource(form);
  const { type_level: typeLevel, ...options } = readFields(fields, form);
  return Object.freeze({ source, ...options, typeLevel });
}
