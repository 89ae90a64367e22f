// npm run setup: everything up to a program that can start, the test addon included.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { reportFailure } from './setup/report.js';

await onSupportedNode();
try {
  await setup({ tests: process.argv.includes('--tests') });
} catch (error) {
  reportFailure(error);
}
