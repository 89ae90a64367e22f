export type Fields = Readonly<Record<string, string>>;

/** One request of the check: a form with the photo as a file, unless it says otherwise. */
export interface CheckRequest {
  readonly name: string;
  /** What the answer may cost: a small result, a large one, or nothing, because it should be refused. */
  readonly asked: 'preview' | 'full' | 'refused' | 'account';
  readonly fields: Fields;
  /** How the photo is sent; `twice` as a file and as Base64. */
  readonly photo?: 'none' | 'twice' | 'text' | 'json' | 'urlencoded';
  readonly background?: true;
  readonly accept?: 'application/json';
  /** The request has a key that no account has. */
  readonly wrongKey?: true;
  /** The size of the result follows from the matte. */
  readonly cropped?: true;
  /** Services may draw the result differently. */
  readonly drawn?: true;
}

type More = Omit<Partial<CheckRequest>, 'name' | 'fields'>;

const named = (name: string, more: More = {}, fields: Fields = {}): CheckRequest => ({
  name,
  asked: 'preview',
  fields,
  ...more,
});

/** A request whose fields are its name. */
const option = (fields: Fields, more?: More): CheckRequest => {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  return named(pairs.join(' '), more, fields);
};

const refused = (fields: Fields): CheckRequest => option(fields, { asked: 'refused' });

/** The request without any option, whose mattes show whether the effects of options can be compared. */
export const plain: CheckRequest = named('plain');

/** All requests, the plain one first; `full` adds those that cost a whole credit. */
export const requestsFor = (full: boolean): readonly CheckRequest[] => [
  plain,
  named('account', { asked: 'account', accept: 'application/json' }),
  option({ format: 'jpg' }),
  option({ format: 'webp' }),
  option({ format: 'zip' }),
  option({ channels: 'alpha' }),
  named('answer as JSON', { accept: 'application/json' }),
  named('body as JSON', { photo: 'json' }),
  named('body urlencoded', { photo: 'urlencoded' }),
  option({ bg_color: '3377cc' }),
  named('bg_image_file', { background: true }),
  option({ roi: '0% 0% 50% 100%' }),
  option({ crop: 'true' }, { cropped: true }),
  option({ crop: 'true', crop_margin: '30px' }, { cropped: true }),
  option({ scale: '50%', position: '0% 0%' }),
  option({ type: 'product' }),
  option({ add_shadow: 'true' }, { drawn: true }),
  ...(full ? ['auto', 'full'].map((size) => option({ size }, { asked: 'full' })) : []),
  named('no image', { asked: 'refused', photo: 'none' }, { size: 'preview' }),
  named('two images', { asked: 'refused', photo: 'twice' }),
  named('a text as image', { asked: 'refused', photo: 'text' }),
  refused({ size: 'huge' }),
  refused({ format: 'gif' }),
  refused({ channels: 'blue' }),
  refused({ roi: 'somewhere' }),
  refused({ roi: '0px 0px 90000px 90000px' }),
  refused({ crop: 'true', crop_margin: '10' }),
  refused({ scale: '5%' }),
  refused({ position: 'left' }),
  refused({ bg_color: 'nocolour' }),
  named('two backgrounds', { asked: 'refused', background: true }, { bg_color: 'fff' }),
  named('wrong key', { asked: 'refused', wrongKey: true }),
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
