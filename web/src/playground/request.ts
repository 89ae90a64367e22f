import type { Request } from '../../../src/http/openapi/programs.ts';
import { endpoint } from '../lib/options.ts';
import type { SourceImage } from './image.ts';

/** Values of the controls; an empty text is not sent. */
export interface Values {
  readonly texts: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, File>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** A new image starts as a preview, so that choosing one never costs a full result. */
export const initialValues: Values = { texts: { size: 'preview' }, files: {}, headers: {} };

export const withSize = (values: Values, size: string): Values => ({
  ...values,
  texts: { ...values.texts, size },
});

export const choosesSubject = ({ texts }: Values): boolean =>
  ['subject_points', 'subject_box'].some((name) => (texts[name] ?? '') !== '');

/** Options that move or cut the image. */
const moving = ['crop', 'scale', 'position'];

/** Whether a result made with these options aligns with the image, pixel by pixel. */
export const isAligned = ({ texts }: Values): boolean =>
  moving.every((name) => ['', 'false', '0', 'original'].includes(texts[name] ?? ''));

/** Options after which the alpha of a result is not the matte, besides those that move the image. */
const covering = ['bg_color', 'bg_image_url', 'add_shadow', 'shadow_type'];

/** Whether the alpha of a result made with these options shows what the subject is, pixel by pixel. */
export const showsSubject = (values: Values): boolean => {
  const { texts, files } = values;
  const isSet = (name: string) => !['', 'false', '0', 'none', 'transparent'].includes(texts[name] ?? '');
  return (
    isAligned(values) &&
    !covering.some(isSet) &&
    !Object.keys(texts).some((name) => name.startsWith('shadow_type[') && isSet(name)) &&
    !('bg_image_file' in files) &&
    !['jpg', 'jpeg'].includes(texts['format'] ?? '') &&
    texts['channels'] !== 'alpha'
  );
};

/** The values with another mask, or without one. */
export function withMask({ files, ...values }: Values, mask: File | undefined): Values {
  const { mask_file: _, ...others } = files;
  return { ...values, files: mask ? { ...others, mask_file: mask } : others };
}

export const headersOf = ({ headers }: Values): readonly (readonly [string, string])[] =>
  Object.entries(headers).filter(([, value]) => value !== '');

/** The request in the form that the sample programs are generated from. */
export function requestOf(image: SourceImage | undefined, values: Values): Request {
  const format = values.texts['format'] ?? 'auto';
  const json = values.headers['Accept'] === 'application/json';
  return {
    address: location.origin,
    path: endpoint,
    image:
      image?.kind === 'url'
        ? { kind: 'url', url: image.url }
        : { kind: 'file', name: image?.file.name ?? 'photo.jpg' },
    fields: Object.entries(values.texts).filter(([, value]) => value !== ''),
    files: Object.entries(values.files).map(([name, file]) => [name, file.name]),
    headers: headersOf(values),
    out: `cutout.${json ? 'json' : ['', 'auto'].includes(format) ? 'png' : format}`,
  };
}

/** The same request as sent by the browser. */
export function formOf(image: SourceImage, values: Values): FormData {
  const form = new FormData();
  if (image.kind === 'file') form.append('image_file', image.file);
  else form.append('image_url', image.url);
  for (const [name, value] of Object.entries(values.texts)) if (value !== '') form.append(name, value);
  for (const [name, file] of Object.entries(values.files)) form.append(name, file);
  return form;
}
