// npm run sanitize [-- PROGRAM…]: builds the native core with each sanitizer and runs its stress programs, or those that
// are named. Findings are fatal.
import { setup } from './setup/index.js';
import { onSupportedNode } from './setup/nodejs.js';
import { inBuild } from './setup/paths.js';
import { reportFailure } from './setup/report.js';
import { buildSanitized, runSanitized } from './setup/sanitizer.js';
import { SetupError } from './setup/step.js';

/** Target → its arguments: seconds or rounds, then the first seed or ONNX Runtime's library. */
const programs = (library) => ({
  native_stress: ['10'],
  faults_stress: [],
  png_stress: ['40'],
  kernels_stress: ['60'],
  low_precision_stress: ['40', library],
  fuzz_stress: ['10', '20261122'],
});

await onSupportedNode();
try {
  await setup({ tests: true });
  const { defaultRuntimePath } = await import(inBuild('ts', 'src', 'engine', 'addon.js'));
  const all = programs(defaultRuntimePath());
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !(name in all));
  if (unknown.length > 0)
    throw new SetupError(`There is no program ${unknown.join(', ')}: ${Object.keys(all).join(', ')}.`);
  for (const sanitizer of ['address', 'undefined', 'thread']) {
    for (const [program, args] of Object.entries(all)) {
      if (names.length > 0 && !names.includes(program)) continue;
      await buildSanitized(sanitizer, program);
      await runSanitized(sanitizer, program, args);
    }
  }
  console.log('No findings.');
} catch (error) {
  reportFailure(error);
}
