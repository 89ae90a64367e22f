// node scripts/audit.js: queries the registry for known vulnerabilities of the shipped packages. Exit status 1 for high
// and critical ones; 2 if the registry gave no answer, so that nothing is known.
import { spawnSync } from 'node:child_process';
import { judge } from './audit/judge.js';
import { onSupportedNode } from './setup/nodejs.js';
import { root } from './setup/paths.js';

await onSupportedNode();
const { stdout, stderr, error } = spawnSync(
  'npm',
  [
    'audit',
    '--json',
    '--omit=dev',
    '--audit=true',
    '--fetch-retries=1',
    '--fetch-retry-mintimeout=1000',
    '--fetch-timeout=20000',
  ],
  { cwd: root, encoding: 'utf8', timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
);
const { status, said } = judge(error ? '' : stdout, error ? error.message : stderr);
console.log(said);
process.exitCode = status;
