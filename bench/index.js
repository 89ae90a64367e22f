// npm run bench -- NAME [options]: runs the compiled benches.
import { existsSync } from 'node:fs';
import { onSupportedNode } from '../scripts/setup/nodejs.js';
import { inBuild } from '../scripts/setup/paths.js';

await onSupportedNode();
const main = inBuild('ts', 'bench', 'main.js');

if (existsSync(main)) {
  process.setSourceMapsEnabled(true);
  await import(main);
} else {
  console.error(
    'bench: it is not built yet; run `npm run setup` first (`npm run setup -- --tests` for kernels and png).',
  );
  process.exitCode = 1;
}
