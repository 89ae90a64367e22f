import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { inBuild } from '../setup/paths.js';

const list = inBuild('logs', `left-out-${process.pid}`);

/** The environment in which tests record that they were skipped (test/fixtures/leftOut.ts). */
export function collectLeftOut() {
  mkdirSync(inBuild('logs'), { recursive: true });
  return { CUTOUT_TEST_LEFT_OUT: list };
}

/** Reports what was skipped since: every reason once, and the tests it skipped. */
export function tellLeftOut() {
  let lines = [];
  try {
    lines = readFileSync(list, 'utf8').trim().split('\n');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  rmSync(list, { force: true });
  const byReason = new Map();
  for (const { file, title, reason } of lines.map((line) => JSON.parse(line))) {
    const tests = byReason.get(reason) ?? new Set();
    byReason.set(reason, tests.add(`${file}: ${title}`));
  }
  for (const [reason, tests] of byReason) {
    console.log(`\n── left out, for ${reason}`);
    for (const each of [...tests].sort()) console.log(`   ${each}`);
  }
  return lines.length;
}
