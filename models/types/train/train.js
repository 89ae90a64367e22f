// node models/types/train/train.js PHOTOS CACHE [OUT]
// Trains the head of the subject types on the features that extract.js left in CACHE, says how well it does on
// sources it never saw, and writes models/types/head.json (or OUT). The same cache gives the same file.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { typeOfKind } from './kinds.js';
import { learnWeights, logitsOf, probabilities, standardise } from './logistic.js';
import { seeded, trainingPhotos } from './pictures.js';
import { confusion, report } from './report.js';

const { SUBJECT_TYPES } = await import(new URL('../../../build/ts/src/engine/types.js', import.meta.url));
const [photosFolder, cache, out = fileURLToPath(new URL('../head.json', import.meta.url))] =
  process.argv.slice(2);

const KINDS = typeOfKind.length;
const CHANNELS = 480;
const FEATURES = 2 * (KINDS + CHANNELS) + 18;
/** The plain halves (places 80-159 and 640-1119) are left out: what lies beside a subject tells its source. */
const USED = Array.from({ length: FEATURES }, (_, at) => at).filter(
  (at) => at < KINDS || (at >= 2 * KINDS && at < 2 * KINDS + CHANNELS) || at >= 2 * (KINDS + CHANNELS),
);

const PENALTY = 0.2;
/** Logits that a thing the detector is wholly sure of gives its type before anything is learnt. */
const PRIOR = 4;
const FOLDS = 5;

function rowsOf(file) {
  const bytes = readFileSync(file);
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  return Array.from({ length: all.length / FEATURES }, (_, row) => {
    const from = all.subarray(row * FEATURES, (row + 1) * FEATURES);
    return Float64Array.from(USED, (at) => from[at]);
  });
}

/** Photos of one source: a set, and in the set of many unlike kinds one kind. They are held out together. */
const sourceOf = ({ set, kind }) => (set === 'caltech101' ? `${set} ${kind}` : set);

const photos = trainingPhotos(photosFolder).map((photo) => ({
  ...photo,
  label: SUBJECT_TYPES.indexOf(photo.type === 'graphics' ? 'graphic' : photo.type),
  source: sourceOf(photo),
  fold: Math.floor(seeded(`fold ${sourceOf(photo)}`)() * FOLDS),
  rows: rowsOf(path.join(cache, `${photo.name.replaceAll('/', '__')}.f32`)),
}));

/** Every type counts alike, and within it a source by the root of its size. */
function weightsOf(chosen) {
  const sizes = new Map();
  for (const { label, source } of chosen)
    sizes.set(`${label} ${source}`, (sizes.get(`${label} ${source}`) ?? 0) + 1);
  const raw = chosen.map(({ label, source }) => 1 / Math.sqrt(sizes.get(`${label} ${source}`)));
  const sums = SUBJECT_TYPES.map((_, type) =>
    raw.reduce((sum, each, at) => sum + (chosen[at].label === type ? each : 0), 0),
  );
  return raw.map((each, at) => each / sums[chosen[at].label] / SUBJECT_TYPES.length);
}

/** Learns from these photos and what augmentation made of them. */
function learn(chosen) {
  const weights = weightsOf(chosen);
  const rows = chosen.flatMap(({ rows: each, label }, at) =>
    each.map((values) => ({ values, label, weight: weights[at] / each.length })),
  );
  const scaling = standardise(rows.map(({ values }) => values));
  const prior = SUBJECT_TYPES.map((type) =>
    Float64Array.from(USED, (_, at) =>
      at < KINDS && typeOfKind[at] === type ? PRIOR / scaling.scale[at] : 0,
    ),
  );
  const model = learnWeights(
    rows.map(({ values, label, weight }) => ({ values: scaling.apply(values), label, weight })),
    { types: SUBJECT_TYPES.length, prior, penalty: PENALTY },
  );
  return { ...model, scaling };
}

const logits = (model, values) => logitsOf(model, model.scaling.apply(values));

// Sources that were never trained on, fold by fold: the photo as it is, no augmentation.
const unseen = [];
for (let fold = 0; fold < FOLDS; fold++) {
  const model = learn(photos.filter((photo) => photo.fold !== fold));
  for (const { rows, label, set, fold: own } of photos) {
    if (own === fold) unseen.push({ label, set, logits: logits(model, rows[0]) });
  }
  console.log(`fold ${fold + 1} of ${FOLDS}`);
}

// How sure it may be, and from where on it is unsure, by what it never saw.
const steps = (from, to, by) =>
  Array.from({ length: Math.round((to - from) / by) + 1 }, (_, at) => from + at * by);
const best = (values, score) => values.reduce((top, each) => (score(each) > score(top) ? each : top));
const temperature = best(steps(0.3, 3, 0.05), (t) =>
  unseen.reduce((sum, each) => sum + Math.log(probabilities(each.logits, t)[each.label]), 0),
);
const tell = (found, threshold) => {
  const p = probabilities(found, temperature);
  const type = p.indexOf(Math.max(...p));
  return p[type] > threshold ? type : SUBJECT_TYPES.indexOf('other');
};
const threshold = best(
  steps(0.2, 0.5, 0.02),
  (limit) => unseen.filter((each) => tell(each.logits, limit) === each.label).length,
);

const judged = unseen.map((each) => ({
  ...each,
  told: tell(each.logits, threshold),
  sure: tell(each.logits, 0),
}));
console.log(
  `\n${photos.length} photos, ${new Set(photos.map(({ source }) => source)).size} sources; temperature ${temperature.toFixed(2)}, threshold ${threshold.toFixed(2)}`,
);
console.log('\nSources held out, fold by fold');
console.log(report(judged, SUBJECT_TYPES));
console.log(confusion(judged, SUBJECT_TYPES));

const model = learn(photos);
const [, ...table] = readFileSync(new URL('heldout.csv', import.meta.url), 'utf8')
  .trim()
  .split('\n');
const held = rowsOf(path.join(cache, 'heldout.f32')).map((values, at) => {
  const [name, type] = table[at].split(',');
  const found = logits(model, values);
  return {
    set: name.split('/')[0],
    label: SUBJECT_TYPES.indexOf(type),
    told: tell(found, threshold),
    sure: tell(found, 0),
  };
});
console.log('\nPhotos labelled by eye (heldout.csv)');
console.log(report(held, SUBJECT_TYPES));
console.log(confusion(held, SUBJECT_TYPES));

/** One scale a row, so that the largest weight becomes 127. */
function quantised(rows) {
  const scales = rows.map((row) => Math.max(...row.map(Math.abs)) / 127);
  return {
    weights: Int8Array.from(rows.flatMap((row, at) => [...row].map((w) => Math.round(w / scales[at])))),
    scales,
  };
}

const spread = (values, rest) => {
  const all = new Float32Array(FEATURES).fill(rest);
  for (const [at, place] of USED.entries()) all[place] = values[at];
  return all;
};
const base64 = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');
const { weights, scales } = quantised(model.weights.map((row) => spread(row, 0)));
const head = {
  about: 'Head of the subject types, written by models/types/train/train.js; meaning: native/classify/head.h',
  types: SUBJECT_TYPES,
  hidden: 0,
  temperature: Number(temperature.toFixed(2)),
  threshold: Number(threshold.toFixed(2)),
  mean: base64(spread(model.scaling.mean, 0)),
  scale: base64(spread(model.scaling.scale, 0)),
  first: base64(weights),
  firstScale: base64(Float32Array.from(scales)),
  firstBias: base64(Float32Array.from(model.bias)),
  second: '',
  secondScale: '',
  secondBias: '',
};
// The list on one line, as the formatter has it.
const text = JSON.stringify(head, null, 2).replace(
  /\[[^\]]*\]/,
  (list) =>
    `[${JSON.parse(list)
      .map((type) => JSON.stringify(type))
      .join(', ')}]`,
);
writeFileSync(out, `${text}\n`);
