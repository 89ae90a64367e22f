// npm run sanitize: builds the native core with each sanitizer and runs its stress programs. Findings are fatal.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { reportFailure } from './setup/report.js';
import { buildSanitized, runSanitized } from './setup/sanitizer.js';

/** Target → its arguments: seconds or rounds, then the first seed. */
const programs = {
  native_stress: ['10'],
  faults_stress: [],
  png_stress: ['40'],
  kernels_stress: ['60'],
  fuzz_stress: ['10', '20261122'],
};

await onSupportedNode();
try {
  await setup({ tests: true });
  for (const sanitizer of ['address', 'undefined', 'thread']) {
    for (const [program, args] of Object.entries(programs)) {
      await buildSanitized(sanitizer, program);
      await runSanitized(sanitizer, program, args);
    }
  }
  console.log('No findings.');
} catch (error) {
  reportFailure(error);
}
