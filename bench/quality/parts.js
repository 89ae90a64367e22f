import {
  figureOf,
  isWrong,
  kindsTable,
  METRICS,
  meansTable,
  ratioOf,
  ratioTable,
  worseShare,
} from './summary.js';

/** A figure for programs, with the goal it is held against. */
export const figure = (name, title, unit, value, goal) => ({
  name,
  title,
  unit,
  median: value,
  samples: [],
  ...(goal && { goal }),
});

/** Every mean of a method. */
export function meanFigures(prefix, label, rows, method) {
  return METRICS.flatMap(({ key, title, times }) => {
    const value = figureOf(rows, method, key);
    return Number.isFinite(value)
      ? [figure(`${prefix}.${method}.${key}`, `${label}, ${method}: ${title}`, '', value * times)]
      : [];
  });
}

/** Ratios of means, `goals[key]` at most. */
export function ratioFigures(prefix, label, rows, method, plain, goals) {
  return Object.entries(goals).flatMap(([key, atMost]) => {
    const found = ratioOf(rows, method, plain, key);
    const title = METRICS.find((metric) => metric.key === key)?.title.replace(' ×10³', '') ?? key;
    return found
      ? [
          figure(`${prefix}.${key}_ratio`, `${label}: ${title} against ${plain}`, '×', found.ratio, {
            atMost,
          }),
        ]
      : [];
  });
}

export const worseFigure = (prefix, label, rows, method, plain, key, atMost) =>
  figure(
    `${prefix}.${key}_worse`,
    `${label}: images with more ${key === 'grad' ? 'Grad' : 'MSE'} than ${plain}`,
    '%',
    worseShare(rows, method, plain, key).share * 100,
    { atMost },
  );

/** Ratios of single images in order: where the line is above 1 the plain method is better. */
function ratiosPlot(title, rows, method, plain) {
  const series = [
    ['bandMse', 'MSE in the band'],
    ['grad', 'Grad'],
  ].map(([key, name]) => {
    const ratios = rows
      .map(({ scores }) => scores[method][key] / scores[plain][key])
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
    return {
      name,
      points: ratios.map((ratio, i) => [(100 * (i + 0.5)) / ratios.length, ratio]),
      dots: true,
    };
  });
  return {
    kind: 'lines',
    title,
    x: { label: '% of the images' },
    y: { label: `${method} / ${plain}` },
    series: series.filter(({ points }) => points.length > 0),
    marks: [{ axis: 'y', at: 1, label: 'no better' }],
  };
}

function kindBars(title, rows, methods) {
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  return {
    kind: 'bars',
    title,
    unit: '',
    bars: kinds.flatMap((kind) => {
      const own = rows.filter((row) => row.kind === kind);
      return methods.map((method) => ({ label: kind, value: figureOf(own, method, 'grad'), series: method }));
    }),
  };
}

/** Everything there is to read about methods on one set of images. */
export function setParts(label, rows, methods, plain) {
  const [first] = methods;
  const parts = [meansTable(`${label}: means of ${rows.length} images`, rows, methods)];
  if (!methods.includes(plain)) return parts;
  for (const method of methods) {
    if (method !== plain) parts.push(ratioTable(`${label}: ${method} against ${plain}`, rows, method, plain));
  }
  const kinds = new Set(rows.map(({ kind }) => kind)).size;
  if (kinds > 1 && kinds <= 16) {
    parts.push(kindsTable(`${label}: ${first} against ${plain}, by kind`, rows, first, plain));
    parts.push(kindBars(`${label}: Grad by kind`, rows, methods));
  }
  if (rows.length > 3) parts.push(ratiosPlot(`${label}: image by image`, rows, first, plain));
  return parts;
}

/** Images on which the network itself fails, said and set apart: no refinement repairs those. */
export function wrongParts(label, rows, methods, plain) {
  const wrong = rows.filter((row) => isWrong(row, plain));
  if (wrong.length === 0)
    return { parts: [], notes: [`${label}: the network is wrong on none of ${rows.length} images.`] };
  const right = rows.filter((row) => !isWrong(row, plain));
  const [method] = methods;
  const table = {
    kind: 'table',
    title: `${label}: where the network itself is wrong`,
    columns: [
      'image',
      '% of the subject wrong, network',
      `%, ${method}`,
      `MSE band ×10³, ${plain}`,
      `MSE band ×10³, ${method}`,
    ],
    rows: wrong.map(({ name, scores }) => [
      name,
      scores[plain].gross * 100,
      scores[method].gross * 100,
      scores[plain].bandMse * 1000,
      scores[method].bandMse * 1000,
    ]),
    note: 'Wrong: means over blocks of 1.2 % of the diagonal differ by more than 5 % of the subject’s area in all, which softness alone does not do. These images are in the means above.',
  };
  const rest =
    right.length > 0
      ? [
          meansTable(`${label}: means of the other ${right.length} images`, right, methods),
          ratioTable(`${label}: ${method} against ${plain} on the others`, right, method, plain),
        ]
      : [];
  return {
    parts: [table, ...rest],
    notes: [
      `${label}: the network is wrong on ${wrong.length} of ${rows.length} images; they are listed, and the others are summed up apart.`,
    ],
  };
}

/** The strips of images, those with the largest errors first. */
export function stripParts(label, rows, method, plain) {
  const shown = rows.filter(({ strip }) => strip);
  shown.sort((a, b) => b.scores[method].bandMse - a.scores[method].bandMse);
  if (shown.length === 0) return [];
  const facts = ({ scores }) =>
    [method, plain]
      .filter((name) => scores[name])
      .map(
        (name) =>
          `${name}: MSE ${(scores[name].bandMse * 1000).toFixed(2)}·10⁻³, Grad ${scores[name].grad.toFixed(2)}`,
      )
      .join(' · ');
  return [
    {
      kind: 'strips',
      title: `${label}: the images, worst first`,
      rows: shown.flatMap((row) => [
        { label: row.name, note: facts(row), images: row.strip.images },
        { label: `${row.name}, enlarged three times`, images: row.strip.zoomed },
      ]),
      note: 'Error maps: red is too opaque, blue too clear.',
    },
  ];
}
