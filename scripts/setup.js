// npm run setup: builds everything that the server needs to start, the kernels for a GPU where NVIDIA's driver is or with
// --gpu; with --tests the test addon too.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { reportFailure } from './setup/report.js';

await onSupportedNode();
try {
  const [tests, gpu] = ['--tests', '--gpu'].map((option) => process.argv.includes(option));
  await setup({ tests, kernels: tests || gpu });
} catch (error) {
  reportFailure(error);
}
