// npm run bench -- NAME [options]: finds the compiled benches and hands over to them; `generate` draws.
import { existsSync } from 'node:fs';
import { inBuild } from '../scripts/setup/paths.js';

const main = inBuild('ts', 'bench', 'main.js');

if (process.argv[2] === 'generate') {
  // Pictures for a folder: plain JavaScript that needs no build.
  const { run } = await import('./quality/generate/command.js');
  await run(process.argv.slice(3)).catch((error) => {
    console.error(`bench: ${error.message}`);
    process.exitCode = 1;
  });
} else if (existsSync(main)) {
  process.setSourceMapsEnabled(true);
  await import(main);
} else {
  console.error(
    'bench: it is not built yet; run `npm run setup` first (`npm run setup -- --tests` for kernels and png).',
  );
  process.exitCode = 1;
}
