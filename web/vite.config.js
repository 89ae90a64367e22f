import { createReadStream, createWriteStream, readdirSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import { defineConfig } from 'vite';

const here = import.meta.dirname;
const out = path.join(here, '..', 'build', 'web');

/** Beside every text file its compressed forms, so that the server never compresses anything itself. */
const compressed = () => ({
  name: 'compressed',
  apply: 'build',
  async closeBundle() {
    const texts = readdirSync(out, { recursive: true })
      .map((file) => path.join(out, String(file)))
      .filter((file) => /\.(?:html|js|css|svg)$/.test(file));
    const brotli = () =>
      createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } });
    await Promise.all(
      texts.flatMap((file) => [
        pipeline(createReadStream(file), brotli(), createWriteStream(`${file}.br`)),
        pipeline(createReadStream(file), createGzip({ level: 9 }), createWriteStream(`${file}.gz`)),
      ]),
    );
  },
});

/** Two pages, playground and console; one folder of hashed files that never change. */
export default defineConfig({
  root: here,
  logLevel: 'warn',
  plugins: [compressed()],
  // The policy of the pages allows no inline data.
  build: {
    outDir: out,
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: path.join(here, 'index.html'), console: path.join(here, 'console.html') },
    },
  },
});
