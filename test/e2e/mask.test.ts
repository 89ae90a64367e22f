import test from 'ava';
import sharp from 'sharp';
import { unless } from '../fixtures/leftOut.ts';
import { startReal } from './real.ts';
import {
  canvas,
  compare,
  cutAlpha,
  half,
  isIn,
  photoOf,
  place,
  subjects,
  subjectsMissing,
} from './twoSubjects.ts';

/** A mask of the alpha without its soft edge: white and black only, as people draw it. */
const drawn = (alpha: Uint8Array): Promise<Buffer> =>
  sharp(Buffer.from(alpha.map((value) => (isIn(value) ? 255 : 0))), { raw: { ...canvas, channels: 1 } })
    .resize(canvas.width / 4, canvas.height / 4, { kernel: 'nearest' })
    .png()
    .toBuffer();

const run = unless(subjectsMissing, test.serial);

run(
  'of two subjects in a photo, the mask cuts out either one, and leaves nothing of the other',
  async (t) => {
    t.timeout(600_000);
    const server = await startReal(t);
    for (const [i, first] of subjects.entries()) {
      const second = subjects[(i + 1) % subjects.length] ?? first;
      const one = await place(first, 0);
      const other = await place(second, half);
      const photo = await photoOf(one, other);
      for (const [chosen, rest] of [
        [one, other],
        [other, one],
      ] as const) {
        const alpha = await cutAlpha(t, server, photo, { mask_file: await drawn(chosen.alpha) });
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
