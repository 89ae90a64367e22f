// node tools/subject-types/extract.js DATA PACKAGES CACHE [SECONDS [PART PARTS]]
// Computes the features of every training photo (DATA/types, PACKAGES) and its augmentations, and of the photos of
// heldout.csv, with the product's native code and the network's mattes. Writes one file per photo to the folder CACHE;
// existing files are skipped, so that an interrupted run continues. PART of PARTS: every PARTS-th photo, from that one
// on, so that several processes share the work.
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describer } from './describe.js';
import { cutOut, laidOver } from './grounds.js';
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
} from './images.js';
import { mattes } from './mattes.js';
import { groundPhotos, packagePhotos } from './packages.js';

const [data, packages, cache, seconds = '1e9', part = '0', parts = '1'] = process.argv.slice(2);
const until = Date.now() + Number(seconds) * 1000;
mkdirSync(cache, { recursive: true });
const { describe, matte, close } = await describer();
const matteOf = mattes(path.join(cache, 'mattes'), matte);

const places = groundPhotos(packagePhotos(packages));

/** The cut-out over a background of each of these kinds, each with the network's matte of the composite. */
async function overGrounds(image, name, kinds, random) {
  const made = [];
  for (const kind of kinds) {
    const laid = await laidOver(kind, image, places, random);
    made.push([laid.image, await matteOf(laid.image, `${name}.over.${kind}`)]);
  }
  return made;
}

/** The subject of a photo, cut out by the network's matte, over a background of each kind, with the same matte. */
async function elsewhere(image, { name, type }, under) {
  // Drawings fill their page; plants and buildings over a photo of a place would be ambiguous.
  if (type.startsWith('graphic')) return [];
  const subject = await cutOut(image, under);
  if (!subject) return [];
  const made = [];
  for (const kind of ['white', 'plain', 'blurred', ...(type === 'other' ? [] : ['sharp'])]) {
    const laid = await laidOver(kind, subject, places, seeded(`${name} ${kind}`));
    made.push([laid.image, laid.matte]);
  }
  return made;
}

/** The samples of a photo: pairs [image, matte], first the unchanged photo. */
async function variants(image, photo) {
  const { name, augment, grounds: kinds } = photo;
  const random = seeded(name);
  const under = await matteOf(image, `${name}.plain`);
  const asItIs = [[image, under]];
  if (!augment) return asItIs;
  const changed = (from, its) => {
    const box = cropBox(random);
    return [mirrored(cropped(tinted(from, random), box)), mirrored(cropped(its, box))];
  };
  if (!isCutOut(image)) {
    const moved = await elsewhere(image, photo, under);
    return [...asItIs, [gray(image), under], changed(image, under), ...moved];
  }
  const white = over(image, [255, 255, 255]);
  const onWhite = await matteOf(white, `${name}.white`);
  if (kinds) {
    const laid = await overGrounds(image, name, kinds, random);
    const [first] = laid;
    return [...asItIs, [white, onWhite], ...laid, [gray(first[0]), first[1]]];
  }
  const ground = [random(), random(), random()].map((value) => Math.floor(value * 256));
  return [...asItIs, [white, onWhite], [gray(white), onWhite], changed(over(image, ground), onWhite)];
}

let done = 0;
const all = [
  ...heldOutPhotos(data).map((photo) => ({ ...photo, augment: false })),
  ...trainingPhotos(data, packages).map((photo) => ({ ...photo, augment: true })),
].filter((_, at) => at % Number(parts) === Number(part));
for (const photo of all) {
  const to = featuresFile(cache, photo.name);
  if (existsSync(to)) continue;
  if (Date.now() > until) break;
  const rows = [];
  for (const [image, under] of await variants(await load(photo.open()), photo)) {
    rows.push(Buffer.from((await describe(image, under)).buffer));
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
