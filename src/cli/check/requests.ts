/** What a request asks for, by what it may cost: a small result, a large one, or one that is refused. */
export type Asked = 'preview' | 'full' | 'refused';

/** Images that the requests send. */
export interface Images {
  readonly photo: Buffer;
  readonly background: Buffer;
}

interface Sent {
  readonly body: NonNullable<RequestInit['body']>;
  readonly contentType?: string;
}

export interface CheckRequest {
  readonly name: string;
  readonly asked: Asked;
  readonly accept: string;
  /** Sends a key that no account has. */
  readonly wrongKey?: true;
  /** The size of the result follows from the matte. */
  readonly cropped?: true;
  /** The services may draw it differently. */
  readonly drawn?: true;
  /** `extra`: fields that are added to those of the request. */
  readonly send: (images: Images, extra: Fields) => Sent;
}

export type Fields = Readonly<Record<string, string>>;

const anyImage = 'image/*, application/zip';

type Parts = Readonly<Record<string, string | Buffer>>;

/** A multipart form; a Buffer becomes a file. */
function form(parts: Parts): Sent {
  const body = new FormData();
  for (const [name, value] of Object.entries(parts))
    body.set(
      name,
      typeof value === 'string' ? value : new Blob([Uint8Array.from(value)]),
      ...fileName(value),
    );
  return { body };
}

const fileName = (value: string | Buffer): [] | [string] => (typeof value === 'string' ? [] : ['image']);

const base64 = ({ photo }: Images): Fields => ({ image_file_b64: photo.toString('base64') });

const upload = (
  name: string,
  fields: Fields = {},
  more: Partial<CheckRequest> = {},
  files: (images: Images) => Parts = () => ({}),
): CheckRequest => ({
  name,
  asked: 'preview',
  accept: anyImage,
  send: (images, extra) => form({ ...extra, ...fields, ...files(images), image_file: images.photo }),
  ...more,
});

/** A request whose options are its name. */
const option = (fields: Fields, more: Partial<CheckRequest> = {}): CheckRequest =>
  upload(
    Object.entries(fields)
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    fields,
    more,
  );

const refusal = { asked: 'refused' } as const;

/** The request without any option, which every other one is compared with. */
export const plain: CheckRequest = upload('plain');

/** Results of the size of a preview. */
const previews: readonly CheckRequest[] = [
  option({ format: 'jpg' }),
  option({ format: 'webp' }),
  option({ format: 'zip' }),
  option({ channels: 'alpha' }),
  upload('answer as JSON', {}, { accept: 'application/json' }),
  upload(
    'body as JSON',
    {},
    {
      send: (images, extra) => ({
        body: JSON.stringify({ ...extra, ...base64(images) }),
        contentType: 'application/json',
      }),
    },
  ),
  upload(
    'body urlencoded',
    {},
    {
      send: (images, extra) => ({ body: new URLSearchParams({ ...extra, ...base64(images) }) }),
    },
  ),
  option({ bg_color: '3377cc' }),
  upload('bg_image_file', {}, {}, ({ background }) => ({ bg_image_file: background })),
  option({ roi: '0% 0% 50% 100%' }),
  option({ crop: 'true' }, { cropped: true }),
  option({ crop: 'true', crop_margin: '30px' }, { cropped: true }),
  option({ scale: '50%', position: '0% 0%' }),
  option({ type: 'product' }),
  option({ add_shadow: 'true' }, { drawn: true }),
];

/** Results that cost a whole credit. */
const large: readonly CheckRequest[] = [
  option({ size: 'auto' }, { asked: 'full' }),
  option({ size: 'full' }, { asked: 'full' }),
];

/** Requests that a compatible service refuses, and does not charge. */
const refusals: readonly CheckRequest[] = [
  upload('no image', {}, { ...refusal, send: (_, extra) => form({ size: 'preview', ...extra }) }),
  upload(
    'two images',
    {},
    {
      ...refusal,
      send: (images, extra) => form({ ...extra, ...base64(images), image_file: images.photo }),
    },
  ),
  upload(
    'a text as image',
    {},
    {
      ...refusal,
      send: (_, extra) => form({ ...extra, image_file: Buffer.from('This is no image.\n') }),
    },
  ),
  option({ size: 'huge' }, refusal),
  option({ format: 'gif' }, refusal),
  option({ channels: 'blue' }, refusal),
  option({ roi: 'somewhere' }, refusal),
  option({ roi: '0px 0px 90000px 90000px' }, refusal),
  option({ crop: 'true', crop_margin: '10' }, refusal),
  option({ scale: '5%' }, refusal),
  option({ position: 'left' }, refusal),
  option({ bg_color: 'nocolour' }, refusal),
  upload('two backgrounds', { bg_color: 'fff' }, refusal, ({ background }) => ({
    bg_image_file: background,
  })),
  upload('wrong key', {}, { ...refusal, wrongKey: true }),
];

/** All requests for the first photo but `plain`; `full` adds those that cost a whole credit. */
export const requestsFor = (full: boolean): readonly CheckRequest[] => [
  ...previews,
  ...(full ? large : []),
  ...refusals,
];

/** The plain request for a further photo. */
export const plainOf = (file: string): CheckRequest => ({ ...plain, name: `plain: ${file}` });
