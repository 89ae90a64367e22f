// npm run sanitize: builds the native core with each sanitizer and runs its stress programs. Findings are fatal.
import { availableParallelism } from 'node:os';
import { findHeaders } from './setup/headers.js';
import { setup } from './setup/index.js';
import { inBuild, root } from './setup/paths.js';
import { reportFailure } from './setup/report.js';
import { runProgram, runStep } from './setup/step.js';

/** Target → its arguments: seconds or rounds. */
const programs = { native_stress: ['10'], png_stress: ['40'], kernels_stress: ['60'] };

async function sanitize(sanitizer) {
  const folder = inBuild('sanitize', sanitizer);
  const run = (log, command, args) => (progress) =>
    runProgram(`sanitize-${sanitizer}-${log}`, command, args, { progress });
  const step = (title, work) =>
    runStep({
      name: `sanitize-${sanitizer}`,
      title: `${sanitizer}: ${title}`,
      inputs: async () => String(Date.now()),
      products: [],
      work,
    });
  await step(
    'configure',
    run('configure', 'cmake', [
      '-S',
      root,
      '-B',
      folder,
      `-DCUTOUT_SANITIZE=${sanitizer}`,
      `-DONNXRUNTIME_INCLUDE_DIR=${findHeaders()}`,
    ]),
  );
  for (const [program, args] of Object.entries(programs)) {
    await step(
      `build ${program}`,
      run('build', 'cmake', [
        '--build',
        folder,
        '--target',
        program,
        '--parallel',
        String(availableParallelism()),
      ]),
    );
    await step(`run ${program}`, run(program, `${folder}/${program}`, args));
  }
}

try {
  await setup({ tests: true });
  for (const sanitizer of ['address', 'undefined', 'thread']) await sanitize(sanitizer);
  console.log('No findings.');
} catch (error) {
  reportFailure(error);
}
