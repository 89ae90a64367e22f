import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { photo } from './lib/pictures.js';
import { median, ms, ratio, table } from './lib/stats.js';

const script = fileURLToPath(new URL('lib/network_run.js', import.meta.url));
const run = promisify(execFile);
const SIDE = 1024;

/** Network input of a picture: (v - 128) / 256, planes. */
async function inputOf(file) {
  const pixels = await sharp(file).removeAlpha().resize(SIDE, SIDE, { fit: 'fill' }).raw().toBuffer();
  const values = new Float32Array(3 * SIDE * SIDE);
  for (let i = 0; i < SIDE * SIDE; i++) {
    for (let c = 0; c < 3; c++) values[c * SIDE * SIDE + i] = (pixels[i * 3 + c] - 128) / 256;
  }
  return Buffer.from(values.buffer);
}

const floats = async (file) => {
  const bytes = await readFile(file);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
};

/**
 * The default network as published and as prepared, taking turns in processes of their own: time of a run,
 * peak memory over the process before the network, and how far the two mattes are apart.
 */
export async function prepared({ folder, rounds, runs, cores }) {
  const files = { published: path.join(folder, 'source.onnx'), prepared: path.join(folder, 'prepared.onnx') };
  for (const file of Object.values(files)) {
    if (!existsSync(file)) throw new Error(`${file} is missing: run \`cutout models pull isnet\` first`);
  }
  const work = await mkdtemp(path.join(tmpdir(), 'cutout-bench-'));
  try {
    const inputs = path.join(work, 'inputs');
    await writeFile(inputs, Buffer.concat([await inputOf(await photo(1)), await inputOf(await photo(4))]));
    const results = { published: [], prepared: [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, file] of Object.entries(files)) {
        const args = [script, file, inputs, path.join(work, name), String(cores), String(runs)];
        results[name].push(JSON.parse((await run(process.execPath, args)).stdout));
      }
    }
    const [before, after] = [
      await floats(path.join(work, 'published')),
      await floats(path.join(work, 'prepared')),
    ];
    const apart = before.reduce((worst, value, at) => Math.max(worst, Math.abs(value - after[at])), 0);
    const summary = (name) => ({
      run: median(results[name].flatMap(({ times }) => times)),
      load: median(results[name].map(({ loadMs }) => loadMs)),
      peak: median(results[name].map(({ peakMb }) => peakMb)),
    });
    const rows = { published: summary('published'), prepared: summary('prepared') };
    const size = async (name) => `${((await stat(files[name])).size / 1e6).toFixed(0)} MB`;
    table(
      await Promise.all(
        Object.entries(rows).map(async ([network, { run, load, peak }]) => ({
          network,
          file: await size(network),
          load: ms(load),
          run: ms(run),
          'peak memory': `${peak.toFixed(0)} MiB`,
        })),
      ),
    );
    console.log(
      `prepared / published: run ${ratio(rows.prepared.run / rows.published.run)}, ` +
        `peak ${ratio(rows.prepared.peak / rows.published.peak)}; ` +
        `mattes at most ${(apart * 255).toFixed(3)}/255 apart; ${rounds} × ${runs} runs each, ${cores} threads`,
    );
  } finally {
    await rm(work, { recursive: true });
  }
}
