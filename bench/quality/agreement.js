import { readFile } from 'node:fs/promises';
import path from 'node:path';
import sharp from 'sharp';
import { requestCutout } from './methods.js';
import { interval, mean } from './metrics/bootstrap.js';
import { boundaryIou } from './metrics/boundary.js';
import { errors } from './metrics/errors.js';
import { regionScores } from './metrics/regions.js';
import { structure } from './metrics/structure.js';
import { figure } from './parts.js';
import { readMatte, readRgb } from './sources.js';
import { errorMap, over } from './strips.js';

/** Rows of a CSV file with a header, as objects; fields may be quoted. */
export function parseCsv(text) {
  const rows = [];
  let [row, field, quoted] = [[], '', false];
  const end = () => {
    row.push(field);
    field = '';
  };
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (text[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === ',') end();
    else if (letter === '\n') {
      end();
      rows.push(row);
      row = [];
    } else if (letter !== '\r') field += letter;
  }
  if (field !== '' || row.length > 0) {
    end();
    rows.push(row);
  }
  const [names = [], ...others] = rows;
  return others.map((values) => Object.fromEntries(names.map((name, i) => [name, values[i] ?? ''])));
}

/**
 * Photos and what others made of them: rows with kind `input`, and rows of kind `peer` or `mask` that name their
 * `input`; `path` is relative to the manifest. `set` and `reference` group them.
 */
export async function readManifest(file) {
  const folder = path.dirname(file);
  const rows = parseCsv(await readFile(file, 'utf8'));
  const photos = new Map(
    rows
      .filter(({ kind }) => kind === 'input')
      .map((row) => [row.path, { name: row.path, file: path.join(folder, row.path), peers: [] }]),
  );
  for (const row of rows) {
    if (row.kind !== 'peer' && row.kind !== 'mask') continue;
    photos.get(row.input)?.peers.push({
      file: path.join(folder, row.path),
      group:
        row.kind === 'mask'
          ? `${row.set}: masks`
          : `${row.set}: ${row.reference.replace(/^.*?: /, '').replace(/ \(.*$/, '')}`,
    });
  }
  return [...photos.values()].filter(({ peers }) => peers.length > 0);
}

/** Correlation of two mattes; 1 where both are the same constant. */
export function correlation(a, b) {
  let [sa, sb, saa, sbb, sab] = [0, 0, 0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    sa += a[i];
    sb += b[i];
    saa += a[i] * a[i];
    sbb += b[i] * b[i];
    sab += a[i] * b[i];
  }
  const n = a.length;
  const [va, vb] = [saa - (sa * sa) / n, sbb - (sb * sb) / n];
  if (va <= 0 || vb <= 0) return va <= 0 && vb <= 0 && sa === sb ? 1 : 0;
  return (sab - (sa * sb) / n) / Math.sqrt(va * vb);
}

async function matteAt(result, size, { width, height }) {
  if (size.width === width && size.height === height) return result;
  const raw = { width: size.width, height: size.height, channels: 1 };
  return new Uint8Array(
    await sharp(result, { raw }).resize(width, height, { fit: 'fill' }).extractChannel(0).raw().toBuffer(),
  );
}

const small = async (data, { width, height }, channels) =>
  `data:image/jpeg;base64,${(
    await sharp(data, { raw: { width, height, channels } })
      .resize({ width: 260 })
      .jpeg({ quality: 70 })
      .toBuffer()
  ).toString('base64')}`;

const BLUE = [30, 96, 200];

/** @returns rows: one a photo and peer */
export async function measureAgreement({ photos, client, strips, progress }) {
  const rows = [];
  for await (const { name, file, peers } of photos) {
    progress(name);
    const image = await readRgb(file);
    const result = await requestCutout(client, image);
    const seen = [];
    for (const { file: peerFile, group } of peers) {
      const { matte: peer, ...size } = await readMatte(peerFile);
      // A peer that shows something else (three garments one below the other) has another shape.
      if (Math.abs(size.width / size.height / (image.width / image.height) - 1) > 0.03) continue;
      const ours = await matteAt(result.matte, image, size);
      const { mae } = errors(ours, peer, new Uint8Array(peer.length), size);
      const { maxF } = regionScores(ours, peer);
      const scores = {
        correlation: correlation(ours, peer),
        mae,
        maxF,
        structure: structure(ours, peer, size),
        boundaryIou: boundaryIou(ours, peer, size),
      };
      rows.push({ name, group, nothing: result.nothing, ...scores });
      seen.push({ group, size, peer, ours, scores });
    }
    const worst = seen.sort((a, b) => a.scores.correlation - b.scores.correlation)[0];
    if (!worst) continue;
    // Kept small: all photos are candidates for the strips until the worst are known.
    rows.findLast((row) => row.name === name).strip = {
      correlation: worst.scores.correlation,
      group: worst.group,
      images: [
        { caption: 'source', src: await small(image.rgb, image, 3) },
        { caption: 'cutout', src: await small(result.matte, image, 1) },
        { caption: worst.group, src: await small(worst.peer, worst.size, 1) },
        { caption: 'difference', src: await small(errorMap(worst.ours, worst.peer), worst.size, 3) },
        { caption: 'cutout on blue', src: await small(over(result.rgb, result.matte, BLUE), image, 3) },
      ],
    };
    const kept = rows.filter(({ strip }) => strip).sort((a, b) => b.strip.correlation - a.strip.correlation);
    for (const row of kept.slice(0, Math.max(0, kept.length - strips))) delete row.strip;
  }
  return rows;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** @returns {{figures: object[], parts: object[], notes: string[]}} */
export function reportAgreement(rows) {
  const groups = [...new Set(rows.map(({ group }) => group))].sort();
  const of = (own) => [
    own.length,
    median(own.map((row) => row.correlation)),
    mean(own.map((row) => row.correlation)),
    mean(own.map(({ mae }) => mae)) * 1000,
    mean(own.map(({ maxF }) => maxF)),
    mean(own.map((row) => row.structure)),
    mean(own.map((row) => row.boundaryIou)),
  ];
  const photos = new Set(rows.map(({ name }) => name)).size;
  const all = rows.map((row) => row.correlation);
  const [low, high] = interval(all, median);
  const shown = rows.filter(({ strip }) => strip).sort((a, b) => a.strip.correlation - b.strip.correlation);
  const nothing = [...new Set(rows.filter((row) => row.nothing).map(({ name }) => name))];
  return {
    figures: [
      figure(
        'quality.agreement.correlation',
        `median correlation with others’ mattes, ${photos} photos`,
        '',
        median(all),
      ),
      figure(
        'quality.agreement.boundary_iou',
        'mean boundary IoU with others’ mattes',
        '',
        mean(rows.map((row) => row.boundaryIou)),
      ),
    ],
    parts: [
      {
        kind: 'table',
        title: 'Agreement with what others made of the same photos',
        columns: [
          'reference',
          'mattes',
          'correlation, median',
          'mean',
          'MAE ×10³',
          'max F',
          'S',
          'boundary IoU',
        ],
        rows: [
          ...groups.map((group) => [group, ...of(rows.filter((row) => row.group === group))]),
          ['all', ...of(rows)],
        ],
        note: `A reference is another tool’s answer, not the truth. 95 % interval of the median correlation: ${low.toFixed(3)} – ${high.toFixed(3)}.`,
      },
      ...(shown.length > 0
        ? [
            {
              kind: 'strips',
              title: 'Where they differ most',
              rows: shown.map(({ name, strip }) => ({
                label: name,
                note: `correlation with ${strip.group}: ${strip.correlation.toFixed(3)}`,
                images: strip.images,
              })),
            },
          ]
        : []),
    ],
    notes:
      nothing.length > 0
        ? [`No subject was found in ${nothing.join(', ')}.`]
        : [`A subject was found in all ${photos} photos.`],
  };
}
