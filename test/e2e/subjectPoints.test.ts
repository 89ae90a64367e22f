import { existsSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { root } from '../fixtures/cli.ts';
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

const models = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');
const missing =
  subjectsMissing ??
  (existsSync(path.join(models, 'sam2-tiny', 'source.ort'))
    ? undefined
    : `the network sam2-tiny is not in ${models}`);
const run = unless(missing, test.serial);

/** The box around what is in an alpha, in percent of the canvas. */
function edges(alpha: Uint8Array): string {
  let [left, top, right, bottom] = [canvas.width, canvas.height, 0, 0];
  for (const [i, value] of alpha.entries()) {
    if (!isIn(value)) continue;
    const [x, y] = [i % canvas.width, Math.floor(i / canvas.width)];
    [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
  }
  const percent = (value: number, side: number) => `${((100 * value) / side).toFixed(2)}%`;
  return [
    percent(left, canvas.width),
    percent(top, canvas.height),
    percent(right, canvas.width),
    percent(bottom, canvas.height),
  ].join(' ');
}

/** Two subjects side by side, and a photo of both. */
async function twoSubjects() {
  const [, first, second] = subjects;
  const one = await place(first, 0);
  const other = await place(second, half);
  return { one, other, photo: await photoOf(one, other) };
}

run('of two subjects in a photo, a box cuts out either one', async (t) => {
  t.timeout(900_000);
  const server = await startReal(t);
  const { one, other, photo } = await twoSubjects();
  for (const [chosen, rest] of [
    [one, other],
    [other, one],
  ] as const) {
    const fields = { subject_box: edges(chosen.alpha) };
    const alpha = await cutAlpha(t, server, photo, fields);
    const { iou, left } = compare(alpha, chosen.alpha, rest.alpha);
    t.log(`${JSON.stringify(fields)}: IoU ${iou.toFixed(3)}, of the other ${(100 * left).toFixed(2)} %`);
    t.true(iou >= 0.85, `IoU ${iou}`);
    t.true(left < 0.02, `of the other ${left}`);
  }
});

run('a further click gives what it gives without the clicks before it', async (t) => {
  t.timeout(900_000);
  const server = await startReal(t);
  const { one, photo } = await twoSubjects();
  const inside = one.alpha.findIndex((value, at) => isIn(value) && at > one.alpha.length / 2);
  const [x, y] = [inside % canvas.width, Math.floor(inside / canvas.width)];
  const clicks = [`${x + 8}px ${y}px`, `; ${x + 16}px ${y}px`, '; -95% 50%'];
  let points = '';
  for (const click of clicks) {
    points += click;
    const clicked = await cutAlpha(t, server, photo, { subject_points: points });
    // Bytes after the image's end make it another one.
    const another = Buffer.concat([photo, Buffer.from(points)]);
    const alone = await cutAlpha(t, server, another, { subject_points: points });
    t.true(clicked.some(isIn), points);
    t.is(Buffer.compare(clicked, alone), 0, points);
  }
});
