#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = new URL('../build/ts/src/main.js', import.meta.url);

/** Of a checkout; an image has a Node.js that fits, and only what is needed to run. */
const nodejs = new URL('../scripts/setup/nodejs.js', import.meta.url);
if (existsSync(fileURLToPath(nodejs))) {
  const { onSupportedNode } = await import(nodejs.href);
  await onSupportedNode();
}

if (existsSync(fileURLToPath(main))) {
  process.setSourceMapsEnabled(true);
  await import(main.href);
} else {
  console.error('cutout is not built yet; run `npm run setup` in its folder.');
  process.exitCode = 1;
}
