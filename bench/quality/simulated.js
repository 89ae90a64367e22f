import { cropped } from './methods.js';
import { uncertainBand } from './metrics/band.js';
import { mean } from './metrics/bootstrap.js';
import { colourError } from './metrics/colour.js';
import { figure, meanFigures, ratioFigures, setParts, stripParts, worseFigure } from './parts.js';
import { enlarge, simulate } from './planes.js';
import { stripOf } from './strips.js';

const REFINED = 'refined';
const PLAIN = 'bilinear';

/**
 * Refinement alone: the exact truth, reduced and blurred, stands for a network that makes no mistake but softness.
 * @param {{images: AsyncIterable<import('./sources.js').Known>, kernels: object, scales: readonly number[], sigmas: readonly number[],
 *   scores: object, strips: number, progress: (text: string) => void}} what
 * @returns rows by case, `x4σ0.8`, and rows of colours alone
 */
export async function measureSimulated({ images, kernels, scales, sigmas, scores, strips, progress }) {
  const cases = scales.flatMap((scale) => sigmas.map((sigma) => ({ scale, sigma, rows: [] })));
  const colours = [];
  const multiple = scales.reduce((a, b) => (a * b) / gcd(a, b), 1);
  for await (const whole of images) {
    const image = cropped(whole, multiple);
    const { name, kind, width, height, rgb, alpha: truth, foreground } = image;
    const size = { width, height };
    const band = image.band ?? uncertainBand(truth, size);
    for (const { scale, sigma, rows } of cases) {
      progress(`${name}: 1/${scale} σ ${sigma}`);
      const network = simulate(truth, size, scale, sigma);
      const results = {
        [REFINED]: kernels.refine(image, network),
        [PLAIN]: { matte: enlarge(network.p, network, size), rgb },
      };
      const row = { name, kind, scores: {} };
      await Promise.all(
        Object.entries(results).map(async ([method, { matte, rgb: own }]) => {
          row.scores[method] = await scores.score({ matte, rgb: own, truth, foreground, band, ...size });
        }),
      );
      const { matte } = results[REFINED];
      if (foreground) {
        row.scores[REFINED].sourceColour = colourError(
          { rgb, alpha: matte },
          { alpha: truth, foreground },
        ).error;
      }
      if (rows.length < strips && scale === scales[0] && sigma === sigmas[0]) {
        const plain = { name: PLAIN, ...results[PLAIN] };
        row.strip = await stripOf(image, { name: REFINED, ...results[REFINED] }, plain, band);
      }
      rows.push(row);
    }
    if (foreground && kernels.colours) {
      progress(`${name}: colours`);
      const known = { alpha: truth, foreground };
      colours.push({
        name,
        kind,
        error: colourError({ rgb: kernels.colours(image) }, known).error,
        source: colourError({ rgb }, known).error,
      });
    }
  }
  return { cases, colours };
}

const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));

function colourReport(colours) {
  const known = colours.filter(({ error }) => Number.isFinite(error));
  if (known.length === 0) return { figures: [], parts: [] };
  const ratio = mean(known.map(({ error }) => error)) / mean(known.map(({ source }) => source));
  const kinds = [...new Set(known.map(({ kind }) => kind))];
  const of = (rows, key) => mean(rows.map((row) => row[key])) * 1000;
  return {
    figures: [
      figure('quality.colours_ratio', 'Colours from the true alpha, against the source’s', '×', ratio, {
        atMost: 0.42,
      }),
    ],
    parts: [
      {
        kind: 'table',
        title: 'Colours from the true alpha, at a quarter of the size',
        columns: ['kind', 'images', 'error ×10³', 'source’s ×10³', 'ratio'],
        rows: [...kinds, 'all'].map((kind) => {
          const own = kind === 'all' ? known : known.filter((row) => row.kind === kind);
          return [
            kind,
            own.length,
            of(own, 'error'),
            of(own, 'source'),
            of(own, 'error') / of(own, 'source'),
          ];
        }),
        note: 'Mean of α* · |difference| over pixels with .01 < α* < .99 and channels, colours in 0..1.',
      },
    ],
  };
}

/** @returns {{figures: object[], parts: object[], notes: string[]}} */
export function reportSimulated({ cases, colours }) {
  const report = { figures: [], parts: [], notes: [] };
  const methods = [REFINED, PLAIN];
  for (const { scale, sigma, rows } of cases) {
    const label = `Refinement alone, truth at 1/${scale}, σ ${sigma}`;
    const prefix = `quality.refine.x${scale}.s${sigma}`;
    report.figures.push(
      ...ratioFigures(prefix, label, rows, REFINED, PLAIN, { bandMse: 0.5, grad: 0.4 }),
      worseFigure(prefix, label, rows, REFINED, PLAIN, 'bandMse', 5),
      worseFigure(prefix, label, rows, REFINED, PLAIN, 'grad', 5),
    );
    for (const method of methods) report.figures.push(...meanFigures(prefix, label, rows, method));
    report.parts.push(...setParts(label, rows, methods, PLAIN), ...stripParts(label, rows, REFINED, PLAIN));
  }
  const { figures, parts } = colourReport(colours);
  report.figures.push(...figures);
  report.parts.push(...parts);
  report.notes.push(
    'Refinement alone: the simulated network is the exact truth averaged down, blurred (σ in its pixels) and rounded to 8 bits; real networks are also wrong.',
  );
  return report;
}
