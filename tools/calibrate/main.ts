// node build/ts/tools/calibrate/main.js [--network NAME] [--data FOLDER] [--models FOLDER] [--statistics FOLDER] [--out FILE]
// Makes models/NAME/int8.json again, isnet's by default; NAME is a U²-Net. Runs the network in floats over the photos
// (photos.ts), which takes a few minutes, and chooses steps, ranges and corrections from what they show (solve.ts,
// ranges.ts). The same photos give the same table. A tool for development: it uses onnxruntime-node and is no part of the product.
import { writeFileSync } from 'node:fs';
import { openCalibration } from './calibration.ts';
import { CALIBRATION_PHOTOS } from './photos.ts';

const { out, quantiles, tableOf } = await openCalibration();
const table = tableOf(quantiles);

/** One line a tensor: a change of the table can be read. */
const lines = (entries: object) =>
  Object.entries(entries)
    .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
    .join(',\n');
writeFileSync(
  out,
  `{
  "sourceSha256": "${table.sourceSha256}",
  "photos": ${JSON.stringify(CALIBRATION_PHOTOS, null, 2).replaceAll('\n', '\n  ')},
  "ranges": ${JSON.stringify(quantiles)},
  "float": ${JSON.stringify(table.float)},
  "tensors": {\n${lines(table.tensors)}\n  },
  "bias": {\n${lines(table.bias)}\n  }
}
`,
);
console.log(`${out}: ${Object.keys(table.tensors).length} tensors from ${CALIBRATION_PHOTOS.length} photos`);
