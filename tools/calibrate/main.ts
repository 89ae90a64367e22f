// node build/ts/tools/calibrate/main.js [--network NAME] [--data FOLDER] [--models FOLDER] [--statistics FOLDER] [--out FILE]
// Writes models/NAME/int8.json, by default isnet's; NAME is a U²-Net. Runs the network in floats over the photos of
// photos.ts, which takes a few minutes, and computes scales, ranges and bias corrections from the statistics (solve.ts,
// ranges.ts). The same photos give the same table. A development tool that uses onnxruntime-node.
import { writeFileSync } from 'node:fs';
import { openCalibration } from './calibration.ts';
import { CALIBRATION_PHOTOS } from './photos.ts';

const { out, quantiles, tableOf } = await openCalibration();
const table = tableOf(quantiles);

/** One line per tensor, so that changes of the table are readable. */
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
