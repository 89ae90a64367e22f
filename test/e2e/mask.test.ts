import { existsSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { root } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';
import { alphaOf, networkMissing, startReal } from './real.ts';

const data = path.join(root, '..', 'shared', 'data', 'jizhizili_peers');

/** Photos with the alpha of another network, each of one animal or person. */
const subjects = [
  ['gfm_samples/1.jpg', 'gfm_samples_alpha/1.png'],
  ['gfm_samples/2.jpg', 'gfm_samples_alpha/2.png'],
  ['p3m_demo/p_514ca06a.jpg', 'p3m_demo_alpha/p_514ca06a.png'],
] as const;

const canvas = { width: 960, height: 640 };
const half = canvas.width / 2;

interface Placed {
  readonly layer: Buffer;
  /** One byte a pixel of the canvas. */
  readonly alpha: Uint8Array;
}

/** A subject in the left or the right half of an empty canvas. */
async function place([photo, matte]: (typeof subjects)[number], left: number): Promise<Placed> {
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

const isIn = (value: number | undefined) => (value ?? 0) >= 128;

/** Of the pixels in `a` or `b`, the share in both; and of those of `other` alone, the share in `a`. */
function compare(a: Uint8Array, b: Uint8Array, other: Uint8Array) {
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

/** A mask of the alpha without its soft edge: white and black only, as people draw it. */
const drawn = (alpha: Uint8Array): Promise<Buffer> =>
  sharp(Buffer.from(alpha.map((value) => (isIn(value) ? 255 : 0))), { raw: { ...canvas, channels: 1 } })
    .resize(canvas.width / 4, canvas.height / 4, { kernel: 'nearest' })
    .png()
    .toBuffer();

const missing = existsSync(data) ? networkMissing : '../shared/data is not here';
const run = unless(missing, test.serial);

run(
  'of two subjects in a photo, the mask cuts out either one, and leaves nothing of the other',
  async (t) => {
    t.timeout(600_000);
    const server = await startReal(t);
    const cut = async (photo: Buffer, mask: Buffer) => {
      const form = new FormData();
      form.set('image_file', new Blob([new Uint8Array(photo)]));
      form.set('mask_file', new Blob([new Uint8Array(mask)]));
      form.set('size', 'full');
      form.set('channels', 'alpha');
      const answer = await fetch(`${server.url}/v1.0/cutout`, {
        method: 'POST',
        headers: { 'X-Api-Key': 'test-key-of-the-local-account' },
        body: form,
      });
      const body = Buffer.from(await answer.arrayBuffer());
      t.is(answer.status, 200, body.toString('latin1', 0, 300));
      return (await alphaOf(body)).data;
    };
    for (const [i, first] of subjects.entries()) {
      const second = subjects[(i + 1) % subjects.length] ?? first;
      const one = await place(first, 0);
      const other = await place(second, half);
      const photo = await sharp({
        create: { ...canvas, channels: 3, background: { r: 120, g: 140, b: 110 } },
      })
        .composite([{ input: one.layer }, { input: other.layer }])
        .jpeg({ quality: 95 })
        .toBuffer();
      for (const [chosen, rest] of [
        [one, other],
        [other, one],
      ] as const) {
        const alpha = await cut(photo, await drawn(chosen.alpha));
        const { iou, left } = compare(alpha, chosen.alpha, rest.alpha);
        t.log(
          `${first[0]} and ${second[0]}: IoU ${iou.toFixed(3)}, of the other ${(100 * left).toFixed(2)} %`,
        );
        t.true(iou >= 0.93, `IoU ${iou}`);
        t.true(left < 0.02, `of the other ${left}`);
      }
    }
  },
);
