// npm run sanitize [-- PROGRAM…]: builds the native core with each sanitizer and runs its stress programs, or those that
// are named. Findings are fatal.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { inBuild } from './setup/paths.js';
import { reportFailure } from './setup/report.js';
import { buildSanitized, runSanitized } from './setup/sanitizer.js';
import { SetupError } from './setup/step.js';

/**
 * Target → its arguments: seconds or rounds, then the first seed or ONNX Runtime's library. Under the thread sanitizer
 * a round takes many times as long.
 */
const programs = (sanitizer, library) => ({
  native_stress: ['10'],
  batcher_stress: ['10'],
  faults_stress: [],
  png_stress: ['40'],
  kernels_stress: ['60'],
  cuda_stress: ['600'],
  device_stress: ['100'],
  low_precision_stress: [sanitizer === 'thread' ? '6' : '30', library],
  fuzz_stress: ['10', '20261122'],
});

await onSupportedNode();
try {
  await setup({ tests: true });
  const { defaultRuntimePath } = await import(inBuild('ts', 'src', 'engine', 'addon.js'));
  const library = defaultRuntimePath();
  const names = process.argv.slice(2);
  const all = Object.keys(programs('address', library));
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new SetupError(`There is no program ${unknown.join(', ')}: ${all.join(', ')}.`);
  for (const sanitizer of ['address', 'undefined', 'thread']) {
    for (const [program, args] of Object.entries(programs(sanitizer, library))) {
      if (names.length > 0 && !names.includes(program)) continue;
      await buildSanitized(sanitizer, program);
      await runSanitized(sanitizer, program, args);
    }
  }
  console.log('No findings.');
} catch (error) {
  reportFailure(error);
}
