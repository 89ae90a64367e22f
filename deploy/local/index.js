// node deploy/local [options]: runs the compiled script.
import { existsSync } from 'node:fs';
import { inBuild } from '../../scripts/setup/paths.js';

const main = inBuild('ts', 'deploy', 'local', 'main.js');

if (existsSync(main)) {
  process.setSourceMapsEnabled(true);
  await import(main);
} else {
  console.error('deploy/local: it is not built yet; run `npm run setup` first.');
  process.exitCode = 1;
}
