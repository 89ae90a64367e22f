import { interval, mean } from './metrics/bootstrap.js';

/**
 * What is printed, in this order. `less`: smaller is better.
 * @type {{key: string, title: string, unit: string, times: number, less: boolean}[]}
 */
export const METRICS = [
  { key: 'mae', title: 'MAE ×10³', times: 1000, less: true },
  { key: 'sad', title: 'SAD', times: 1, less: true },
  { key: 'mse', title: 'MSE ×10³', times: 1000, less: true },
  { key: 'bandSad', title: 'SAD band', times: 1, less: true },
  { key: 'bandMse', title: 'MSE band ×10³', times: 1000, less: true },
  { key: 'grad', title: 'Grad', times: 1, less: true },
  { key: 'conn', title: 'Conn', times: 1, less: true },
  { key: 'maxF', title: 'max F', times: 1, less: false },
  { key: 'weightedF', title: 'weighted F', times: 1, less: false },
  { key: 'structure', title: 'S', times: 1, less: false },
  { key: 'meanE', title: 'mean E', times: 1, less: false },
  { key: 'boundaryIou', title: 'boundary IoU', times: 1, less: false },
  { key: 'visible', title: 'visible ×10³', times: 1000, less: true },
  { key: 'colour', title: 'colour ×10³', times: 1000, less: true },
];

const known = (rows, method, key) => rows.filter((row) => Number.isFinite(row.scores[method]?.[key]));

/** The maximum of the mean curve: F of a set of images. */
function setF(rows, method) {
  const curve = new Float64Array(256);
  for (const row of rows)
    row.scores[method].curve.forEach((value, t) => {
      curve[t] += value / rows.length;
    });
  return Math.max(...curve);
}

/** The figure of a set of images: the mean, for F the maximum of the mean curve; NaN where nothing is known. */
export function figureOf(rows, method, key) {
  const some = known(rows, method, key);
  if (some.length === 0) return Number.NaN;
  return key === 'maxF' ? setF(some, method) : mean(some.map((row) => row.scores[method][key]));
}

/** The figure of one method over that of another on the images both have, with its 95 % interval. */
export function ratioOf(rows, method, other, key) {
  const both = known(known(rows, method, key), other, key);
  if (both.length === 0) return undefined;
  const ratio = (some) =>
    mean(some.map((row) => row.scores[method][key])) / mean(some.map((row) => row.scores[other][key]));
  return { ratio: ratio(both), interval: interval(both, ratio), images: both.length };
}

/** Share of images on which a method's error is larger, by more than rounding could make it. */
export function worseShare(rows, method, other, key) {
  const both = known(known(rows, method, key), other, key);
  const worse = both.filter(({ scores }) => scores[method][key] > scores[other][key] * 1.005 + 1e-7);
  return { share: both.length ? worse.length / both.length : 0, names: worse.map(({ name }) => name) };
}

/** Where the network itself is wrong: more than 5 % of the subject's area, which no softness explains (grossError). */
const GROSS = 0.05;
export const isWrong = ({ scores }, method) => (scores[method]?.gross ?? 0) > GROSS;

const cell = (value, times) => (Number.isFinite(value) ? value * times : null);

/** Means of all methods: one row a method. */
export function meansTable(title, rows, methods, note) {
  const metrics = METRICS.filter(({ key }) => methods.some((method) => known(rows, method, key).length > 0));
  return {
    kind: 'table',
    title,
    columns: ['method', ...metrics.map((metric) => metric.title)],
    rows: methods.map((method) => [
      method,
      ...metrics.map(({ key, times }) => cell(figureOf(rows, method, key), times)),
    ]),
    ...(note && { note }),
  };
}

/** A method against a plain one: ratio of means, interval, share of images on which it is worse. */
export function ratioTable(title, rows, method, plain) {
  const metrics = METRICS.filter(({ less, key }) => less && ratioOf(rows, method, plain, key));
  return {
    kind: 'table',
    title,
    columns: ['metric', 'ratio of means', '95 % interval', 'images worse', 'which'],
    rows: metrics.map(({ key, title: name }) => {
      const {
        ratio,
        interval: [low, high],
        images,
      } = ratioOf(rows, method, plain, key);
      const { share, names } = worseShare(rows, method, plain, key);
      return [
        name.replace(' ×10³', ''),
        `${ratio.toFixed(3)}×`,
        `${low.toFixed(3)} – ${high.toFixed(3)}`,
        `${Math.round(share * images)} of ${images}`,
        names.slice(0, 4).join(', ') + (names.length > 4 ? ' …' : ''),
      ];
    }),
  };
}

/** Ratios by kind of image. */
export function kindsTable(
  title,
  rows,
  method,
  plain,
  keys = ['bandMse', 'grad', 'conn', 'visible', 'colour'],
) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  const shown = METRICS.filter(({ key }) => keys.includes(key) && ratioOf(rows, method, plain, key));
  return {
    kind: 'table',
    title,
    columns: ['kind', 'images', ...shown.map(({ title: name }) => `${name.replace(' ×10³', '')}, ratio`)],
    rows: kinds.map((kind) => {
      const own = rows.filter((row) => row.kind === kind);
      return [kind, own.length, ...shown.map(({ key }) => ratioOf(own, method, plain, key)?.ratio ?? null)];
    }),
  };
}
