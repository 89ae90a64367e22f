// npm run format: corrects the format of every file. `npm test` only checks it.
import { spawnSync } from 'node:child_process';
import { clangFormat } from './format/clang.js';
import { onSupportedNode } from './setup/nodejs.js';
import { inRoot, root } from './setup/paths.js';

await onSupportedNode();
const biome = spawnSync(
  process.execPath,
  [inRoot('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--write', '.'],
  {
    cwd: root,
    stdio: 'inherit',
  },
);
process.exitCode = clangFormat({ write: true }) && biome.status === 0 ? 0 : 1;
