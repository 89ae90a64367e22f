export type Fields = Readonly<Record<string, string>>;

/** One request of the check: a form with the photo as a file, unless it says otherwise. */
export interface CheckRequest {
  readonly name: string;
  /** What the answer may cost: a small result, a large one, or nothing, because it should be refused. */
  readonly expects: 'preview' | 'full' | 'refused' | 'account';
  readonly fields: Fields;
  /** How the photo is sent; `twice` as a file and as Base64. */
  readonly photo?: 'none' | 'twice' | 'text' | 'json' | 'urlencoded';
  readonly background?: true;
  readonly accept?: 'application/json';
  /** The request has a key that no account has. */
  readonly wrongKey?: true;
}

/** A request that is named after its fields. */
const option = (fields: Fields, more: Partial<CheckRequest> = {}): CheckRequest => ({
  name: Object.entries(fields)
    .map((pair) => pair.join('='))
    .join(' '),
  expects: 'preview',
  fields,
  ...more,
});

const options = (...all: readonly Fields[]) => all.map((fields) => option(fields));
const refused = (...all: readonly Fields[]) => all.map((fields) => option(fields, { expects: 'refused' }));
const named = (name: string, more: Partial<CheckRequest> = {}) => option({}, { name, ...more });

/** The request without any option, whose mattes show whether the effects of options can be compared. */
export const plain: CheckRequest = named('plain');

/** All requests, the plain one first; `full` adds those that cost a whole credit. */
export const requestsFor = (full: boolean): readonly CheckRequest[] => [
  plain,
  named('account', { expects: 'account', accept: 'application/json' }),
  ...options({ format: 'jpg' }, { format: 'webp' }, { format: 'zip' }, { channels: 'alpha' }),
  named('answer as JSON', { accept: 'application/json' }),
  named('body as JSON', { photo: 'json' }),
  named('body urlencoded', { photo: 'urlencoded' }),
  ...options({ bg_color: '3377cc' }),
  named('bg_image_file', { background: true }),
  ...options({ roi: '0% 0% 50% 100%' }, { crop: 'true' }, { crop: 'true', crop_margin: '30px' }),
  ...options({ scale: '50%', position: '0% 0%' }, { type: 'product' }, { add_shadow: 'true' }),
  ...(full ? ['auto', 'full'].map((size) => option({ size }, { expects: 'full' })) : []),
  named('no image', { expects: 'refused', photo: 'none', fields: { size: 'preview' } }),
  named('two images', { expects: 'refused', photo: 'twice' }),
  named('a text as image', { expects: 'refused', photo: 'text' }),
  ...refused({ size: 'huge' }, { format: 'gif' }, { channels: 'blue' }),
  ...refused({ roi: 'somewhere' }, { roi: '0px 0px 90000px 90000px' }, { crop: 'true', crop_margin: '10' }),
  ...refused({ scale: '5%' }, { position: 'left' }, { bg_color: 'nocolour' }),
  named('two backgrounds', { expects: 'refused', background: true, fields: { bg_color: 'fff' } }),
  named('wrong key', { expects: 'refused', wrongKey: true }),
];

const blob = (bytes: Buffer) => new Blob([Uint8Array.from(bytes)]);

/** The body of a POST. The fields of the request are added to `extra`. */
export function bodyOf(
  { fields, photo, background }: CheckRequest,
  image: Buffer,
  backgroundImage: Buffer,
  extra: Fields,
): Pick<RequestInit, 'body' | 'headers'> {
  const all: Record<string, string> = { ...extra, ...fields };
  if (photo === 'json' || photo === 'urlencoded' || photo === 'twice')
    all['image_file_b64'] = image.toString('base64');
  if (photo === 'json') return { body: JSON.stringify(all), headers: { 'Content-Type': 'application/json' } };
  if (photo === 'urlencoded') return { body: new URLSearchParams(all) };
  const form = new FormData();
  for (const [name, value] of Object.entries(all)) form.set(name, value);
  if (background) form.set('bg_image_file', blob(backgroundImage), 'image');
  const file = photo === 'text' ? Buffer.from('This is no image.\n') : image;
  if (photo !== 'none') form.set('image_file', blob(file), 'image');
  return { body: form };
}
