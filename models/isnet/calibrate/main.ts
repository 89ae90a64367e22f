// node build/ts/models/isnet/calibrate/main.js [--data FOLDER] [--models FOLDER] [--statistics FOLDER] [--out FILE]
// Makes models/isnet/int8.json again: runs the network in floats over the photos (photos.ts), which takes a few
// minutes, and chooses steps, ranges and corrections from what they show (solve.ts). The same photos give the same
// table. A tool for development: it uses onnxruntime-node and is no part of the product.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { manifestSchema } from '../../../src/models/manifest.ts';
import { collect, readStatistics } from './collect.ts';
import { layersOf } from './layers.ts';
import { readNetwork } from './network.ts';
import { CALIBRATION_PHOTOS } from './photos.ts';
import { solve } from './solve.ts';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const { values } = parseArgs({
  options: {
    data: { type: 'string', default: path.join(root, '..', 'shared', 'data') },
    models: {
      type: 'string',
      default: process.env['CUTOUT_MODELS_DIR'] ?? path.join(root, 'data', 'models'),
    },
    statistics: { type: 'string', default: path.join(root, 'build', 'calibrate') },
    out: { type: 'string', default: path.join(root, 'models', 'isnet', 'int8.json') },
  },
});
const manifest = manifestSchema.parse(
  JSON.parse(readFileSync(path.join(root, 'models', 'isnet', 'model.json'), 'utf8')),
);
const { features = '' } = manifest;
const source = path.join(values.models, manifest.name, 'source.onnx');
const sum = createHash('sha256').update(readFileSync(source)).digest('hex');
if (sum !== manifest.file.sha256) throw new Error(`${source} is not the file the manifest names`);

mkdirSync(values.statistics, { recursive: true });
await collect({ source, features, data: values.data, folder: values.statistics }, CALIBRATION_PHOTOS);

const { graph, floats } = readNetwork(source, features);
const photos = function* () {
  for (const [at, photo] of CALIBRATION_PHOTOS.entries()) yield readStatistics(values.statistics, at, photo);
};
const logit = graph.node.findLast(({ opType }) => opType === 'Conv')?.output[0];
const input = graph.input[0]?.name;
if (logit === undefined || input === undefined)
  throw new Error('the network has no last convolution or no input');
const { mean, std } = manifest.input;
const table = solve(layersOf(graph, floats), photos(), { name: input, mean: mean[0], std: std[0] }, logit);

/** One line a tensor: a change of the table can be read. */
const lines = (entries: object) =>
  Object.entries(entries)
    .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
    .join(',\n');
writeFileSync(
  values.out,
  `{
  "sourceSha256": "${sum}",
  "photos": ${JSON.stringify(CALIBRATION_PHOTOS, null, 2).replaceAll('\n', '\n  ')},
  "float": ${JSON.stringify(table.float)},
  "tensors": {\n${lines(table.tensors)}\n  },
  "bias": {\n${lines(table.bias)}\n  }
}
`,
);
console.log(
  `${values.out}: ${Object.keys(table.tensors).length} tensors from ${CALIBRATION_PHOTOS.length} photos`,
);
