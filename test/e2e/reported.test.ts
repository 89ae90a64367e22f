import test from 'ava';
import sharp from 'sharp';
import { unless } from '../fixtures/leftOut.ts';
import { alphaOf, cutOut, networkMissing, startReal } from './real.ts';

/** What users of other programs reported: see docs/compatibility.md. */

const run = unless(networkMissing, test.serial);

const svg = (width: number, height: number, inner: string): Buffer =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${inner}</svg>`);

const body = 'M400 250 H800 Q795 600 760 740 Q600 790 440 740 Q405 600 400 250Z';
const handle = 'M800 350 q160 20 130 160 q-30 110 -150 90';
const blur = '<defs><filter id="b"><feGaussianBlur stdDeviation="18"/></filter></defs>';

run('a white mug on white is whole, without holes', async (t) => {
  t.timeout(300_000);
  const server = await startReal(t);
  const photo = await sharp(
    svg(
      1200,
      900,
      `${blur}<rect width="100%" height="100%" fill="#fff"/><ellipse cx="600" cy="760" rx="240" ry="30" opacity="0.25" filter="url(#b)"/><path d="${body}" fill="#fafafa" stroke="#e6e6e6" stroke-width="6"/><path d="${handle}" fill="none" stroke="#e6e6e6" stroke-width="34"/>`,
    ),
  )
    .removeAlpha()
    .jpeg({ quality: 92 })
    .toBuffer();
  const drawn = await sharp(
    svg(
      1200,
      900,
      `<rect width="100%" height="100%"/><path d="${body}" fill="#fff" stroke="#fff" stroke-width="6"/><path d="${handle}" fill="none" stroke="#fff" stroke-width="34"/>`,
    ),
  )
    .extractChannel(0)
    .raw()
    .toBuffer();
  const answer = await cutOut(server, photo, { size: 'full', format: 'png' });
  t.is(answer.status, 200);
  const { data } = await alphaOf(Buffer.from(await answer.arrayBuffer()));
  let [both, either, missing] = [0, 0, 0];
  for (const [i, alpha] of data.entries()) {
    const [found, wanted] = [alpha >= 128, (drawn[i] ?? 0) >= 128];
    if (found && wanted) both += 1;
    if (found || wanted) either += 1;
    if (wanted && !found) missing += 1;
  }
  t.log(`IoU ${(both / either).toFixed(3)}, missing ${missing} pixels`);
  t.true(both / either > 0.97);
  t.true(missing / both < 0.01);
});

/** Left, top, diameter. */
const islands = [
  [100, 100, 24],
  [1900, 120, 20],
  [150, 1400, 18],
  [1850, 1380, 16],
  [1000, 60, 14],
  [80, 750, 12],
  [1930, 760, 24],
  [1000, 1440, 20],
] as const;

run('every small island of a mask survives, far from the subject, at any size and in any form', async (t) => {
  t.timeout(300_000);
  const server = await startReal(t);
  const [width, height] = [2000, 1500];
  const discs = (colour: string) =>
    islands.map(([x, y, d]) => `<circle cx="${x}" cy="${y}" r="${d / 2}" fill="${colour}"/>`).join('');
  const scene = (back: string, subject: string, small: string) =>
    sharp(
      svg(
        width,
        height,
        `<rect width="100%" height="100%" fill="${back}"/><circle cx="1000" cy="750" r="300" fill="${subject}"/>${discs(small)}`,
      ),
    ).removeAlpha();
  const photo = await scene('#7fa0c0', '#654321', '#222').jpeg({ quality: 92 }).toBuffer();
  const mask = await scene('#000', '#fff', '#fff').png().toBuffer();
  const quarter = await sharp(mask)
    .resize(width / 4, height / 4)
    .jpeg({ quality: 85 })
    .toBuffer();
  for (const size of ['full', 'preview'])
    for (const given of [mask, quarter]) {
      const fields = { size, format: 'png', mask_file_b64: given.toString('base64') };
      const answer = await cutOut(server, photo, fields);
      t.is(answer.status, 200);
      const found = await alphaOf(Buffer.from(await answer.arrayBuffer()));
      const k = found.width / width;
      for (const [x, y, d] of islands) {
        const alpha = found.data[Math.round(y * k) * found.width + Math.round(x * k)] ?? 0;
        t.true(alpha >= 128, `${size}: ${d} pixels at ${x}, ${y}: ${alpha}`);
      }
    }
});
