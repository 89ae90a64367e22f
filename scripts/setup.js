// npm run setup: everything up to a program that can start, the test addon included.
import { setup } from './setup/index.js';
import { SetupError } from './setup/step.js';

try {
  await setup({ tests: process.argv.includes('--tests') });
} catch (error) {
  console.error(error instanceof SetupError ? `\n${error.message}\n` : error);
  process.exitCode = 1;
}
