// node tools/subject-types/train.js DATA PACKAGES CACHE [OUT]
// Trains the classifier head of the subject types on the features that extract.js wrote to CACHE, reports its accuracy
// on held-out sources, and writes models/types/head.json (or OUT). The same cache gives the same file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { joined, learnHidden } from './hidden.js';
import { featuresFile, heldOutPhotos, seeded, trainingPhotos } from './images.js';
import { typeOfKind } from './kinds.js';
import { learnWeights, logitsOf, probabilities, standardise } from './logistic.js';
import { isPackage } from './packages.js';
import { confusion, report } from './report.js';

const { allSubjectTypes } = await import(new URL('../../build/ts/src/engine/types.js', import.meta.url));
const [data, packages, cache, out = fileURLToPath(new URL('../../models/types/head.json', import.meta.url))] =
  process.argv.slice(2);

// Order of the features (native/classify/features.h).
const KINDS = typeOfKind.length;
const CHANNELS = 480;
const FEATURES = KINDS + CHANNELS + 6 + 2 * 20;
const isMap = (at) => at >= KINDS && at < KINDS + CHANNELS;

const PENALTY = 0.005;
/** Scale of the feature maps relative to the other features: they distinguish sources as well as types. */
const MAPS = 0.4;
/** Prior: the logit of a type for an object of which the detector is certain. */
const PRIOR = 4;
/** Weight of a product's photo relative to other types: products are the commonest and most diverse subjects. */
const PRODUCT = 3;
/** Subtracted from the logit of `other` after training: such subjects are rare in requests. */
const OTHER_LESS = 0.5;
/** Number of folds for the categories of Caltech 101; every other source is a fold of its own. */
const PARTS = 6;

function rowsOf(file) {
  const bytes = readFileSync(file);
  const all = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  return Array.from({ length: all.length / FEATURES }, (_, row) =>
    Float64Array.from(all.subarray(row * FEATURES, (row + 1) * FEATURES)),
  );
}

const known = ({ name }) => existsSync(featuresFile(cache, name));
const OTHER = allSubjectTypes.indexOf('other');
const labelOf = (type) => allSubjectTypes.indexOf(type === 'graphics' ? 'graphic' : type);
const foldOf = ({ set, source }) =>
  set === 'caltech101' ? `part ${Math.floor(seeded(`fold ${source}`)() * PARTS)}` : set;

const wanted = trainingPhotos(data, packages);
const photos = wanted.filter(known).map((photo) => ({
  ...photo,
  label: labelOf(photo.type),
  fold: foldOf(photo),
  rows: rowsOf(featuresFile(cache, photo.name)),
}));
if (photos.length < wanted.length) console.log(`${wanted.length - photos.length} photos are not in ${cache}`);

/** Types other than products have equal weight, sources of a type the square root of their size. The sum is 1. */
function weightsOf(chosen) {
  const sizes = new Map();
  for (const { label, source } of chosen)
    sizes.set(`${label} ${source}`, (sizes.get(`${label} ${source}`) ?? 0) + 1);
  const raw = chosen.map(({ label, source }) => 1 / Math.sqrt(sizes.get(`${label} ${source}`)));
  const sums = allSubjectTypes.map((_, type) =>
    raw.reduce((sum, each, at) => sum + (chosen[at].label === type ? each : 0), 0),
  );
  const shares = allSubjectTypes.map((type) => (type === 'product' ? PRODUCT : 1));
  const all = shares.reduce((a, b) => a + b);
  return raw.map((each, at) => (each * shares[chosen[at].label]) / sums[chosen[at].label] / all);
}

/** Trains on these photos and their augmentations. */
function learn(chosen) {
  const weights = weightsOf(chosen);
  const rows = chosen.flatMap(({ rows: each, label }, at) =>
    each.map((values) => ({ values, label, weight: weights[at] / each.length })),
  );
  const scaling = standardise(
    rows.map(({ values }) => values),
    (at) => (isMap(at) ? MAPS : 1),
  );
  const prior = allSubjectTypes.map((type) =>
    Float64Array.from({ length: FEATURES }, (_, at) =>
      typeOfKind[at] === type ? PRIOR / scaling.scale[at] : 0,
    ),
  );
  const scaled = rows.map(({ values, label, weight }) => ({ values: scaling.apply(values), label, weight }));
  const types = allSubjectTypes.length;
  const linear = learnWeights(scaled, { types, prior, penalty: PENALTY });
  const found = scaled.map(({ values }) => logitsOf(linear, values));
  const hidden = learnHidden(scaled, found, { types, seed: 'hidden layer' });
  const head = joined(linear, hidden);
  head.secondBias[OTHER] -= OTHER_LESS;
  return { ...head, scaling };
}

function logits({ first, firstBias, second, secondBias, scaling }, values) {
  const units = logitsOf({ weights: first, bias: firstBias }, scaling.apply(values));
  return logitsOf(
    { weights: second, bias: secondBias },
    units.map((unit) => Math.max(unit, 0)),
  );
}

// Cross-validation over the photos of DATA, unaugmented, with their sources held out fold by fold. Images of packages
// are in the training set of every fold.
const judged = photos.filter(({ set }) => !isPackage(set));
const unseen = [...new Set(judged.map((photo) => photo.fold))].sort().flatMap((fold) => {
  const model = learn(photos.filter((photo) => photo.fold !== fold));
  console.log(`without ${fold}`);
  return judged
    .filter((photo) => photo.fold === fold)
    .map(({ rows, label, set }) => ({ label, set, logits: logits(model, rows[0]) }));
});

// Temperature and threshold, calibrated on held-out sources.
const steps = (from, to, by) =>
  Array.from({ length: Math.round((to - from) / by) + 1 }, (_, at) => from + at * by);
const best = (values, score) => values.reduce((top, each) => (score(each) > score(top) ? each : top));
const temperature = best(steps(0.3, 3, 0.05), (t) =>
  unseen.reduce((sum, each) => sum + Math.log(probabilities(each.logits, t)[each.label]), 0),
);
const tell = (found, threshold) => {
  const p = probabilities(found, temperature);
  const type = p.indexOf(Math.max(...p));
  return p[type] > threshold ? type : OTHER;
};
// Both accuracies have equal weight: over all photos, and over those that are not `other`.
const named = unseen.filter(({ label }) => label !== OTHER);
const share = (of, limit) => of.filter((each) => tell(each.logits, limit) === each.label).length / of.length;
const threshold = best(steps(0.2, 0.5, 0.02), (limit) => share(unseen, limit) + share(named, limit));

function show(found) {
  const predicted = found.map((each) => ({ ...each, predicted: tell(each.logits, threshold) }));
  console.log(`${report(predicted, allSubjectTypes)}\n${confusion(predicted, allSubjectTypes)}`);
}
console.log(
  `\n${photos.length} photos, ${new Set(photos.map(({ source }) => source)).size} sources; temperature ${temperature.toFixed(2)}, threshold ${threshold.toFixed(2)}`,
);
console.log('\nSources held out, fold by fold');
show(unseen);
const model = learn(photos);
const byEye = heldOutPhotos(data)
  .filter(known)
  .map(({ name, type, set }) => {
    const [values] = rowsOf(featuresFile(cache, name));
    return { set, label: labelOf(type), logits: logits(model, values) };
  });
console.log('\nPhotos labelled by eye (heldout.csv)');
show(byEye);

/** One scale per row, so that the largest weight becomes 127. */
function quantised(rows) {
  const scales = rows.map((row) => Math.max(...row.map(Math.abs)) / 127);
  return {
    weights: Int8Array.from(rows.flatMap((row, at) => [...row].map((w) => Math.round(w / scales[at])))),
    scales,
  };
}

/** The cache was computed at this input side: a head is only valid for a detector of the same one. */
const detector = JSON.parse(
  readFileSync(new URL('../../models/centernet/model.json', import.meta.url), 'utf8'),
);

const base64 = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');
const [first, second] = [quantised(model.first), quantised(model.second)];
const head = {
  about:
    'Head of the subject types, written by tools/subject-types/train.js; meaning: native/classify/subject_head.h',
  types: allSubjectTypes,
  detectorSide: detector.input.width,
  hidden: model.first.length,
  temperature: Number(temperature.toFixed(2)),
  threshold: Number(threshold.toFixed(2)),
  mean: base64(Float32Array.from(model.scaling.mean)),
  scale: base64(Float32Array.from(model.scaling.scale)),
  first: base64(first.weights),
  firstScale: base64(Float32Array.from(first.scales)),
  firstBias: base64(Float32Array.from(model.firstBias)),
  second: base64(second.weights),
  secondScale: base64(Float32Array.from(second.scales)),
  secondBias: base64(Float32Array.from(model.secondBias)),
};
// The list is on one line, as the formatter requires.
const text = JSON.stringify(head, null, 2).replace(
  /\[[^\]]*\]/,
  (list) =>
    `[${JSON.parse(list)
      .map((type) => JSON.stringify(type))
      .join(', ')}]`,
);
writeFileSync(out, `${text}\n`);
