import type { Values } from './request.ts';

/** What lies behind the subject in the file: the API's own options say it. */
export type Ground =
  | { readonly kind: 'none' }
  /** Six hexadecimal digits. */
  | { readonly kind: 'colour'; readonly hex: string }
  | { readonly kind: 'image'; readonly file: File }
  /** Another value of an option, which the page does not show. */
  | { readonly kind: 'other'; readonly text: string };

export function groundOf({ texts, files }: Values): Ground {
  const file = files['bg_image_file'];
  if (file) return { kind: 'image', file };
  const colour = (texts['bg_color'] ?? '').replace(/^#/, '').toLowerCase();
  if (/^[0-9a-f]{6}$/.test(colour)) return { kind: 'colour', hex: colour };
  const other = colour === 'transparent' ? '' : colour || (texts['bg_image_url'] ?? '');
  return other === '' ? { kind: 'none' } : { kind: 'other', text: other };
}

export function withGround(values: Values, ground: Ground): Values {
  const { bg_color: _, bg_image_url: __, ...texts } = values.texts;
  const { bg_image_file: ___, ...files } = values.files;
  return {
    ...values,
    texts: ground.kind === 'colour' ? { ...texts, bg_color: ground.hex } : texts,
    files: ground.kind === 'image' ? { ...files, bg_image_file: ground.file } : files,
  };
}

export function sameGround(one: Values, other: Values): boolean {
  const [a, b] = [groundOf(one), groundOf(other)];
  if (a.kind === 'image' && b.kind === 'image') return a.file === b.file;
  return JSON.stringify(a) === JSON.stringify(b);
}
