import type { Source } from '../cutout/request.ts';
import { fail } from '../errors.ts';
import type { Form } from './form.ts';

/** The one source of the picture (docs/contract.md section 3). Throws `missing_source` and `multiple_sources`. */
export function readSource(form: Form): Source {
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
