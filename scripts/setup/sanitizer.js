import { availableParallelism } from 'node:os';
import { provideHeaders } from './headers/index.js';
import { inBuild, root } from './paths.js';
import { runProgram, runStep } from './step.js';

const folderOf = (sanitizers) => inBuild('sanitize', sanitizers.replace(',', '-'));

const step = (sanitizers, title, log, command, args) =>
  runStep({
    name: `sanitize-${sanitizers}`,
    title: `${sanitizers}: ${title}`,
    inputs: async () => String(Date.now()),
    products: [],
    work: (progress) => runProgram(`sanitize-${sanitizers}-${log}`, command, args, { progress }),
  });

/**
 * Builds one of the programs of test/stress with sanitizers, in a separate build folder.
 * @param {string} sanitizers address, undefined, thread, or `address,undefined`
 * @param {string} program its target
 */
export async function buildSanitized(sanitizers, program) {
  const folder = folderOf(sanitizers);
  await step(sanitizers, 'configure', 'configure', 'cmake', [
    '-S',
    root,
    '-B',
    folder,
    `-DCUTOUT_SANITIZE=${sanitizers}`,
    `-DONNXRUNTIME_INCLUDE_DIR=${await provideHeaders()}`,
  ]);
  await step(sanitizers, `build ${program}`, 'build', 'cmake', [
    '--build',
    folder,
    '--target',
    program,
    '--parallel',
    String(availableParallelism()),
  ]);
}

/** Runs it; a finding is fatal, and its text is the error's. @param {readonly string[]} args */
export const runSanitized = (sanitizers, program, args) =>
  step(sanitizers, `run ${program}`, program, `${folderOf(sanitizers)}/${program}`, args);
