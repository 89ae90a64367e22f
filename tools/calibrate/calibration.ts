import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { QuantisationTable } from '../../src/compiler/quantise/table.ts';
import { type Manifest, manifestSchema } from '../../src/models/manifest.ts';
import { collect, readStatistics } from './collect.ts';
import { layersOf } from './layers.ts';
import { readNetwork } from './network.ts';
import { CALIBRATION_PHOTOS } from './photos.ts';
import { QUANTILES, type Quantiles } from './ranges.ts';
import { merge, solve } from './solve.ts';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

interface Calibration {
  readonly source: string;
  readonly manifest: Manifest;
  /** Folder of the photos. */
  readonly data: string;
  /** File to write to. */
  readonly out: string;
  /** The quantiles of ranges.ts for this network; a network without any uses the default ones. */
  readonly quantiles: Quantiles;
  readonly tableOf: (quantiles: Quantiles) => QuantisationTable;
}

/** Reads the command line, collects the statistics that are missing, and reads the structure of the network. */
export async function openCalibration(): Promise<Calibration> {
  const { values } = parseArgs({
    options: {
      network: { type: 'string', default: 'isnet' },
      data: { type: 'string', default: path.join(root, '..', 'shared', 'data') },
      models: {
        type: 'string',
        default: process.env['CUTOUT_MODELS_DIR'] ?? path.join(root, 'data', 'models'),
      },
      statistics: { type: 'string', default: path.join(root, 'build', 'calibrate') },
      out: { type: 'string' },
    },
  });
  const { network, data, models } = values;
  const folder = path.join(values.statistics, network);
  const own = path.join(root, 'models', network);
  const manifest = manifestSchema.parse(JSON.parse(readFileSync(path.join(own, 'model.json'), 'utf8')));
  const { features } = manifest;
  const source = path.join(models, manifest.name, 'source.onnx');
  const sourceSha256 = createHash('sha256').update(readFileSync(source)).digest('hex');
  if (sourceSha256 !== manifest.file.sha256) throw new Error(`${source} is not the file the manifest names`);

  mkdirSync(folder, { recursive: true });
  await collect({ source, manifest, data, folder }, CALIBRATION_PHOTOS);
  const { graph, floats } = readNetwork(source, features);
  const photos = function* () {
    for (const [at, photo] of CALIBRATION_PHOTOS.entries()) yield readStatistics(folder, at, photo);
  };
  const name = graph.input[0]?.name;
  if (name === undefined) throw new Error('the network has no input');
  const layers = layersOf(graph, floats);
  const merged = merge(photos());
  const input = { ...manifest.input, name };
  return {
    source,
    manifest,
    data,
    out: values.out ?? path.join(own, 'int8.json'),
    quantiles: QUANTILES[network] ?? {},
    tableOf: (quantiles) => ({ sourceSha256, ...solve(layers, merged, quantiles, input) }),
  };
}
