// npm run bench -- kernels: milliseconds and nanoseconds a pixel of the native kernels, medians.
// Needs the test addon (npm run setup -- --tests). Pictures are generated; nothing here is a test.
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { inBuild } from '../scripts/setup/paths.js';

const { benchKernel } = createRequire(import.meta.url)(inBuild('native', 'Release', 'cutout_test.node'));

const ROUNDS = 7;
const KERNELS = [
  'networkInput',
  'applyMatte',
  'reduceToHalf',
  'reduceToTenth',
  'composeColour',
  'composePicture',
  'composeShadow',
  'composeScaled',
  'composeEnlarged',
  'composeEnlargedLittle',
];
const threads = availableParallelism();

console.log(`${'kernel'.padEnd(22)}${'MP'.padStart(6)}${'ms'.padStart(9)}${'ns/pixel'.padStart(10)}`);
for (const kernel of KERNELS) {
  for (const megapixels of [1, 12, 50]) {
    const { pixels, ms } = benchKernel(kernel, megapixels, threads, ROUNDS);
    const median = ms.sort((a, b) => a - b)[ROUNDS >> 1];
    console.log(
      kernel.padEnd(22) +
        megapixels.toString().padStart(6) +
        median.toFixed(1).padStart(9) +
        ((median * 1e6) / pixels).toFixed(2).padStart(10),
    );
  }
}
