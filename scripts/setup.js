// npm run setup: builds everything that the server needs to start; with --tests the test addon too.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { reportFailure } from './setup/report.js';

await onSupportedNode();
try {
  await setup({ tests: process.argv.includes('--tests') });
} catch (error) {
  reportFailure(error);
}
