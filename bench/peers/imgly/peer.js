// Adapter (bench/peers/README.md) for @imgly/background-removal-node with its default settings and PNG out.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { removeBackground } from '@imgly/background-removal-node';

const { version } = createRequire(import.meta.url)(
  './node_modules/@imgly/background-removal-node/package.json',
);

export const about = {
  title: `@imgly/background-removal-node ${version}`,
  licence: 'AGPL-3.0',
  weights: 'isnet',
};

async function cut(bytes) {
  const blob = await removeBackground(new Blob([bytes], { type: 'image/jpeg' }), {
    model: 'medium',
    output: { format: 'image/png', quality: 1 },
  });
  return Buffer.from(await blob.arrayBuffer());
}

/** The network is opened by the first image and kept, so one is cut before anything is measured. */
export async function prepare({ warmUp }) {
  await cut(await readFile(warmUp));
}

export async function run(file) {
  const bytes = await readFile(file);
  const started = performance.now();
  const png = await cut(bytes);
  return { png, ms: performance.now() - started };
}
