import type { Client } from './client.ts';
import type { Images } from './images.ts';

/** One request of the mix. */
interface MixedRequest {
  readonly label: string;
  /** Megapixels of the upload; 0 sends data that is not an image. */
  readonly megapixels: number;
  readonly fields: Readonly<Record<string, string>>;
  /** Expected status. */
  readonly status: number;
}

const request = (
  megapixels: number,
  fields: Readonly<Record<string, string>>,
  status = 200,
): MixedRequest => ({
  label: megapixels > 0 ? `${megapixels} MP ${Object.values(fields).join(' ')}` : 'no image',
  megapixels,
  fields,
  status,
});

/** A typical mix, in an order that repeats every twenty requests: sizes, formats, layers, errors. */
const DAY: readonly MixedRequest[] = [
  request(1, { size: 'preview', format: 'png' }),
  request(4, { size: 'full', format: 'png' }),
  request(12, { size: 'full', format: 'png' }),
  request(0.25, { size: 'full', format: 'webp' }),
  request(0, { size: 'full' }, 400),
  request(12, { size: 'preview', format: 'jpg' }),
  request(1, { size: 'full', format: 'zip' }),
  request(4, { size: 'full', format: 'jpg', bg_color: '3366cc' }),
  request(12, { size: 'full', format: 'webp' }),
  request(1, { size: 'full', format: 'tiff' }, 400),
  request(25, { size: 'full', format: 'png' }),
  request(1, { size: 'full', format: 'png', crop: 'true', add_shadow: 'true' }),
  request(0.25, { size: 'preview', format: 'png' }),
  request(12, { size: 'full', format: 'jpg' }),
  request(4, { size: 'full', format: 'png', channels: 'alpha' }),
  request(50, { size: '50MP', format: 'png' }),
  request(1, { size: 'full', format: 'png', scale: '80%' }),
  request(4, { size: 'full', format: 'zip' }),
  request(12, { size: 'full', format: 'png', bg_color: 'ffffff' }),
  request(50, { size: 'preview', format: 'webp' }),
];

export const mixed = (count: number): readonly MixedRequest[] =>
  Array.from({ length: count }, (_, i) => DAY[i % DAY.length]).filter((one) => one !== undefined);

/** Sends requests of the mix; generates every image once. */
export function mixedSender(client: Client, images: Images): (one: MixedRequest) => Promise<void> {
  const made = new Map<number, Promise<Buffer>>();
  return async ({ label, megapixels, fields, status }) => {
    const image =
      made.get(megapixels) ??
      (megapixels > 0 ? images.jpeg(megapixels) : Promise.resolve(Buffer.from('no image')));
    made.set(megapixels, image);
    const answer = await client.cutout(await image, fields);
    if (answer.status !== status)
      throw new Error(`${label}: expected ${status}, got ${answer.status} ${answer.code}`);
  };
}
