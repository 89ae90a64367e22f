import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ExecutionContext } from 'ava';
import sharp from 'sharp';
import { root, type Serving } from '../fixtures/cli.ts';
import { alphaOf, networkMissing } from './real.ts';

export const data = path.join(root, '..', 'shared', 'data', 'jizhizili_peers');

/** Photos with the alpha of another network, each of one animal or person. */
export const subjects = [
  ['gfm_samples/1.jpg', 'gfm_samples_alpha/1.png'],
  ['gfm_samples/2.jpg', 'gfm_samples_alpha/2.png'],
  ['p3m_demo/p_514ca06a.jpg', 'p3m_demo_alpha/p_514ca06a.png'],
] as const;

export const canvas = { width: 960, height: 640 };
export const half = canvas.width / 2;

export interface Placed {
  readonly layer: Buffer;
  /** One byte a pixel of the canvas. */
  readonly alpha: Uint8Array;
}

/** A subject in the left or the right half of an empty canvas. */
export async function place([photo, matte]: (typeof subjects)[number], left: number): Promise<Placed> {
  const { width, height } = await sharp(path.join(data, photo)).metadata();
  const alpha = await alphaOf(path.join(data, matte), { width, height });
  // In a step of its own: removeAlpha would drop the joined channel too.
  const rgb = await sharp(path.join(data, photo)).removeAlpha().raw().toBuffer();
  const whole = await sharp(rgb, { raw: { width, height, channels: 3 } })
    .joinChannel(Buffer.from(alpha.data), { raw: { width, height, channels: 1 } })
    .png()
    .toBuffer();
  const { data: cutout, info: size } = await sharp(whole)
    .resize(half, canvas.height, { fit: 'inside' })
    .png()
    .toBuffer({ resolveWithObject: true });
  const layer = await sharp({
    create: { ...canvas, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } },
  })
    .composite([{ input: cutout, left: left + ((half - size.width) >> 1), top: canvas.height - size.height }])
    .png()
    .toBuffer();
  return { layer, alpha: (await alphaOf(layer)).data };
}

export const isIn = (value: number | undefined) => (value ?? 0) >= 128;

/** Of the pixels in `a` or `b`, the share in both; and of those of `other` alone, the share in `a`. */
export function compare(a: Uint8Array, b: Uint8Array, other: Uint8Array) {
  let [both, either, left, others] = [0, 0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    if (isIn(a[i]) && isIn(b[i])) both++;
    if (isIn(a[i]) || isIn(b[i])) either++;
    if (isIn(other[i]) && !isIn(b[i])) {
      others++;
      if (isIn(a[i])) left++;
    }
  }
  return { iou: both / either, left: left / others };
}

/** Both in one photo. */
export const photoOf = (one: Placed, other: Placed): Promise<Buffer> =>
  sharp({ create: { ...canvas, channels: 3, background: { r: 120, g: 140, b: 110 } } })
    .composite([{ input: one.layer }, { input: other.layer }])
    .jpeg({ quality: 95 })
    .toBuffer();

/** Why this cannot be tested here; undefined if it can. */
export const subjectsMissing = existsSync(data) ? networkMissing : '../shared/data is not here';

/** The alpha of a photo's cut-out at full size. */
export async function cutAlpha(
  t: ExecutionContext,
  { url }: Serving,
  photo: Buffer,
  fields: Readonly<Record<string, string | Buffer>>,
): Promise<Uint8Array> {
  const form = new FormData();
  form.set('image_file', new Blob([new Uint8Array(photo)]));
  form.set('size', 'full');
  form.set('channels', 'alpha');
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.set(name, value);
    else form.set(name, new Blob([new Uint8Array(value)]));
  }
  const answer = await fetch(`${url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': 'test-key-of-the-local-account' },
    body: form,
  });
  const body = Buffer.from(await answer.arrayBuffer());
  t.is(answer.status, 200, body.toString('latin1', 0, 300));
  return (await alphaOf(body)).data;
}
