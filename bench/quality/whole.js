import { requestCutout } from './methods.js';
import { uncertainBand } from './metrics/band.js';
import { mean } from './metrics/bootstrap.js';
import { colourError } from './metrics/colour.js';
import { figure, meanFigures, ratioFigures, setParts, stripParts, wrongParts } from './parts.js';
import { stripOf } from './strips.js';
import { METRICS } from './summary.js';

export const PLAIN = 'bilinear';

/**
 * The product with the real network, over HTTP, against the same network's alpha plainly enlarged.
 * @param {{images: AsyncIterable<import('./sources.js').Known>, targets: {name: string, client: object}[],
 *   network: object | undefined, scores: object, strips: number, progress: (text: string) => void}} what the first target is the
 *   one that figures and strips are about
 */
export async function measureWhole({ images, targets, network, scores, strips, progress }) {
  const rows = [];
  for await (const image of images) {
    const { name, kind, width, height, rgb, alpha: truth, foreground } = image;
    const size = { width, height };
    const band = image.band ?? uncertainBand(truth, size);
    const results = new Map();
    for (const { name: method, client } of targets) {
      progress(`${name}: ${method}`);
      results.set(method, await requestCutout(client, image));
    }
    if (network) {
      progress(`${name}: network alone`);
      results.set(PLAIN, { matte: network.bilinear(await network.alphaOf(image), size), rgb });
    }
    const row = { name, kind, megapixels: image.megapixels, scores: {}, nothing: [] };
    progress(`${name}: scores`);
    await Promise.all(
      [...results].map(async ([method, { matte, rgb: colours, nothing }]) => {
        const found = await scores.score({ matte, rgb: colours, truth, foreground, band, ...size });
        if (foreground)
          found.sourceColour = colourError({ rgb, alpha: matte }, { alpha: truth, foreground }).error;
        row.scores[method] = found;
        if (nothing) row.nothing.push(method);
      }),
    );
    if (rows.length < strips) {
      const [{ name: method }] = targets;
      const plain = results.get(PLAIN);
      row.strip = await stripOf(
        image,
        { name: method, ...results.get(method) },
        plain && { name: PLAIN, ...plain },
        band,
      );
    }
    rows.push(row);
  }
  return rows;
}

/** Smaller than plain enlarging in every mean, Grad by a fifth. */
const GOALS = Object.fromEntries(
  METRICS.filter(({ less }) => less).map(({ key }) => [key, key === 'grad' ? 0.8 : 1]),
);
const COLOUR_GOAL = 0.42;

function colourRatio(prefix, label, rows, method) {
  const known = rows.filter(
    ({ scores }) => Number.isFinite(scores[method].colour) && scores[method].sourceColour > 0,
  );
  if (known.length === 0) return [];
  const of = (key) => mean(known.map(({ scores }) => scores[method][key]));
  const value = of('colour') / of('sourceColour');
  return [
    figure(`${prefix}.colour_ratio`, `${label}: colours against the source’s`, '×', value, {
      atMost: COLOUR_GOAL,
    }),
  ];
}

/** @returns {{figures: object[], parts: object[], notes: string[]}} */
export function reportWhole(rows, methods) {
  const sizes = [...new Set(rows.map(({ megapixels }) => megapixels))];
  const [method] = methods;
  const plain = methods.includes(PLAIN) ? PLAIN : undefined;
  const report = { figures: [], parts: [], notes: [] };
  for (const megapixels of sizes) {
    const own = rows.filter((row) => row.megapixels === megapixels);
    const label = megapixels === undefined ? 'End to end' : `End to end, ${megapixels} MP`;
    const prefix = megapixels === undefined ? 'quality.whole' : `quality.whole.${megapixels}mp`;
    if (plain) {
      const { colour: _, ...goals } = GOALS;
      report.figures.push(...ratioFigures(prefix, label, own, method, plain, goals));
    }
    report.figures.push(...colourRatio(prefix, label, own, method));
    for (const one of methods) report.figures.push(...meanFigures(prefix, label, own, one));
    report.parts.push(...setParts(label, own, methods, plain));
    if (plain) {
      const wrong = wrongParts(label, own, methods, plain);
      report.parts.push(...wrong.parts);
      report.notes.push(...wrong.notes);
    }
    const nothing = own.filter((row) => row.nothing.includes(method)).map(({ name }) => name);
    if (nothing.length > 0) report.notes.push(`${label}: no subject was found in ${nothing.join(', ')}.`);
    report.parts.push(...stripParts(label, own, method, plain));
  }
  return report;
}
