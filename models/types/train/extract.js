// node models/types/train/extract.js PHOTOS CACHE [SECONDS] [MATTES]
// Features of every training photo and of what augmentation makes of it, by the product's own native code, into
// the folder CACHE: one file a photo, written once, so that a run that is ended goes on where it was.
// MATTES: a folder of <type>__<file>.u16, 1024 x 1024 mattes of 16 bits the network made; without one for a photo
// its own alpha counts, else a rough one.
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describer } from './describe.js';
import {
  cropBox,
  cropped,
  gray,
  load,
  mirrored,
  networkMatte,
  over,
  ownMatte,
  roughMatte,
  seeded,
  tinted,
  trainingPhotos,
} from './pictures.js';

const [photos, cache, seconds = '1e9', mattes] = process.argv.slice(2);
const until = Date.now() + Number(seconds) * 1000;
mkdirSync(cache, { recursive: true });

/** What is made of one photo: [picture, matte] each. */
function variants(picture, matte, random) {
  const centre = matte ?? roughMatte('centre', random);
  const changed = (from) => {
    const box = cropBox(random);
    return [mirrored(cropped(tinted(from, random), box)), mirrored(cropped(matte ?? centre, box))];
  };
  if (!ownMatte(picture))
    return [[picture, centre], [gray(picture), matte ?? roughMatte('everywhere', random)], changed(picture)];
  const white = over(picture, [255, 255, 255]);
  const colour = [random(), random(), random()].map((value) => Math.floor(value * 256));
  return [[picture, centre], [white, centre], [gray(white), centre], changed(over(picture, colour))];
}

const { describe, close } = await describer();
let done = 0;
const all = trainingPhotos(photos);
for (const { name, file } of all) {
  const to = path.join(cache, `${name.replaceAll('/', '__')}.f32`);
  if (existsSync(to)) continue;
  if (Date.now() > until) break;
  const picture = await load(file);
  const matte = ownMatte(picture) ?? networkMatte(mattes, name);
  const rows = [];
  for (const [each, under] of variants(picture, matte, seeded(name))) rows.push(await describe(each, under));
  writeFileSync(`${to}.part`, Buffer.concat(rows.map((row) => Buffer.from(row.buffer))));
  renameSync(`${to}.part`, to);
  done += 1;
  if (done % 100 === 0) console.log(`${done} photos`);
}
await close();
const left = all.filter(
  ({ name }) => !existsSync(path.join(cache, `${name.replaceAll('/', '__')}.f32`)),
).length;
console.log(`${left} photos left`);
process.exitCode = left > 0 ? 3 : 0;
