import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';

/** How AVA marks a test that failed, and a file whose process ended early. */
const mark = /^\s*✘ /;

/**
 * Collects what a run of AVA says failed, so that it can be told again where a log ends.
 * @param {import('node:stream').Readable} output of the run
 * @returns {string[]} filled while the output is read
 */
export function collectFailures(output) {
  const failures = [];
  createInterface({ input: output }).on('line', (line) => {
    const plain = stripVTControlCharacters(line);
    if (mark.test(plain)) failures.push(plain.replace(mark, '').trim());
  });
  return failures;
}

/** Reports them. */
export function tellFailures(failures) {
  if (failures.length > 0) console.log('\n── failed');
  for (const failure of failures) console.log(`   ${failure}`);
}
