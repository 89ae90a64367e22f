import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';

/** How AVA marks a test or a file that failed, and what was thrown outside of a test. */
const mark = /^✘ (.*)|^((?:Uncaught exception|Unhandled rejection) in .*)/;
/** Other lines that end what AVA tells of a failure. */
const end = /^[✔─ℹ]/;
const place = /^[^\s:]+:\d+$/;
/** Source, stack and headings. */
const noise = /^(?:\d+:|› |at |$|Difference \(|(?:Error thrown in|Rejected promise returned by) test)/;
const change = /^[-+] /;

/** Failures that are listed; a log's end holds little more. */
const MOST = 14;
/** Characters of one. */
const WIDTH = 240;

/**
 * Collects what a run of AVA says failed, so that it can be told again where a log ends.
 * @param {import('node:stream').Readable} output of the run
 * @returns {{text: string, lines: string[]}[]} filled while the output is read: what failed, and what AVA tells of it, which
 *   for tests follows later and in the same order
 */
export function collectFailures(output) {
  const failures = [];
  let told = 0;
  let current;
  createInterface({ input: output }).on('line', (line) => {
    const plain = stripVTControlCharacters(line).trim();
    const [, failed, thrown] = mark.exec(plain) ?? [];
    if (failed ?? thrown) {
      current = { text: failed ?? thrown, lines: [] };
      failures.push(current);
      return;
    }
    const tests = failures.filter(({ text }) => text.startsWith('['));
    if (plain !== '' && tests[told]?.text.includes(`]: ${plain}`)) current = tests[told++];
    else if (end.test(plain)) current = undefined;
    else current?.lines.push(plain);
  });
  return failures;
}

/** A line for each failure: what failed, where, and the difference or the error's first lines. */
export function failureLines(failures) {
  const listed = failures.slice(0, MOST).map(({ text, lines }) => {
    const telling = lines.filter((line) => !noise.test(line) && !place.test(line));
    const first = [...telling.filter((line) => change.test(line)), ...telling].slice(0, 2);
    const where = lines.find((line) => place.test(line));
    return `   ${[text, where && `(${where})`, ...first].filter(Boolean).join(' ')}`.slice(0, WIDTH);
  });
  return failures.length > MOST ? [...listed, `   and ${failures.length - MOST} more`] : listed;
}
