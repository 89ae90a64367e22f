// node models/types/train/extract.js DATA CACHE [SECONDS]
// Features of every training photo (DATA/types) and of what augmentation makes of it, and of the photos in
// heldout.csv, by the product's own native code under the network's own mattes, into the folder CACHE: one file a
// photo, written once, so that a run that is ended goes on where it was.
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describer } from './describe.js';
import { mattes } from './mattes.js';
import {
  cropBox,
  cropped,
  featuresFile,
  gray,
  heldOutPhotos,
  isCutOut,
  load,
  mirrored,
  over,
  seeded,
  tinted,
  trainingPhotos,
} from './pictures.js';

const [data, cache, seconds = '1e9'] = process.argv.slice(2);
const until = Date.now() + Number(seconds) * 1000;
mkdirSync(cache, { recursive: true });
const { describe, matte, close } = await describer();
const matteOf = mattes(path.join(cache, 'mattes'), matte);

/** What is made of one photo: [picture, matte] each, first the photo as it is. */
async function variants(picture, name, { augment }) {
  const random = seeded(name);
  const under = await matteOf(picture, `${name}.plain`);
  const plain = [[picture, under]];
  if (!augment) return plain;
  const changed = (from, its) => {
    const box = cropBox(random);
    return [mirrored(cropped(tinted(from, random), box)), mirrored(cropped(its, box))];
  };
  if (!isCutOut(picture)) return [...plain, [gray(picture), under], changed(picture, under)];
  const white = over(picture, [255, 255, 255]);
  const onWhite = await matteOf(white, `${name}.white`);
  const ground = [random(), random(), random()].map((value) => Math.floor(value * 256));
  return [...plain, [white, onWhite], [gray(white), onWhite], changed(over(picture, ground), onWhite)];
}

let done = 0;
const all = [
  ...heldOutPhotos(data).map((photo) => ({ ...photo, augment: false })),
  ...trainingPhotos(data).map((photo) => ({ ...photo, augment: true })),
];
for (const { name, file, augment } of all) {
  const to = featuresFile(cache, name);
  if (existsSync(to)) continue;
  if (Date.now() > until) break;
  const rows = [];
  for (const [picture, under] of await variants(await load(file), name, { augment })) {
    rows.push(Buffer.from((await describe(picture, under)).buffer));
  }
  writeFileSync(`${to}.part`, Buffer.concat(rows));
  renameSync(`${to}.part`, to);
  done += 1;
  if (done % 100 === 0) console.log(`${done} photos`);
}
await close();
const left = all.filter(({ name }) => !existsSync(featuresFile(cache, name))).length;
console.log(`${left} photos left`);
process.exitCode = left > 0 ? 3 : 0;
