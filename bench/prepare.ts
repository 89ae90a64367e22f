import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import sharp from 'sharp';
import { jsonLines } from './lib/child.ts';
import type { BenchCommand, Context, Shared } from './lib/command.ts';
import { drawnJpeg } from './lib/images.ts';
import { computed, measured, type Outcome } from './lib/outcome.ts';
import { childScript, preparedNetwork } from './lib/paths.ts';
import { median } from './lib/stats.ts';

export const command: BenchCommand = {
  name: 'prepare',
  title: 'Network as published and as prepared',
  summary: 'time, memory and matte of the default network as published and as prepared',
  shared: { rounds: 3 },
  all: { full: { rounds: 1 } },
};

const SIDE = 1024;
const RUNS = 3;
const KINDS = ['published', 'prepared'] as const;
type Kind = (typeof KINDS)[number];

interface NetworkRun {
  readonly loadMs: number;
  readonly times: readonly number[];
  readonly peakMb: number;
}

/** Network input of an image: (v - 128) / 256, planes. */
async function inputOf(image: Buffer): Promise<Buffer> {
  const pixels = await sharp(image).removeAlpha().resize(SIDE, SIDE, { fit: 'fill' }).raw().toBuffer();
  const values = new Float32Array(3 * SIDE * SIDE);
  for (let i = 0; i < SIDE * SIDE; i++) {
    for (let c = 0; c < 3; c++) values[c * SIDE * SIDE + i] = ((pixels[i * 3 + c] ?? 0) - 128) / 256;
  }
  return Buffer.from(values.buffer);
}

async function floats(file: string): Promise<Float32Array> {
  const bytes = await readFile(file);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

/**
 * The default network as published and as prepared, alternating in separate processes: time of a run,
 * peak memory above the process without the network, and the difference of the two mattes.
 */
export async function run({ rounds }: Shared, { progress }: Context): Promise<Outcome> {
  const folder = path.dirname(preparedNetwork());
  const files: Record<Kind, string> = {
    published: path.join(folder, 'source.onnx'),
    prepared: path.join(folder, 'prepared.onnx'),
  };
  for (const file of Object.values(files)) {
    if (!existsSync(file))
      throw new Error(`${file} is missing: run \`cutout models prepare isnet --precision fp32\` first`);
  }
  const work = await mkdtemp(path.join(tmpdir(), 'cutout-bench-'));
  const cores = availableParallelism();
  try {
    const inputs = path.join(work, 'inputs');
    await writeFile(
      inputs,
      Buffer.concat([await inputOf(await drawnJpeg(1)), await inputOf(await drawnJpeg(4))]),
    );
    const results: Record<Kind, NetworkRun[]> = { published: [], prepared: [] };
    for (let round = 1; round <= rounds; round++) {
      for (const kind of KINDS) {
        progress(`round ${round} of ${rounds}, ${kind}`);
        const args = [files[kind], inputs, path.join(work, kind), cores, RUNS];
        const [result] = await jsonLines(childScript('networkRun.js'), args);
        results[kind].push(result as NetworkRun);
      }
    }
    const [before, after] = [
      await floats(path.join(work, 'published')),
      await floats(path.join(work, 'prepared')),
    ];
    const apart = before.reduce((worst, value, at) => Math.max(worst, Math.abs(value - (after[at] ?? 0))), 0);
    const rows = await Promise.all(
      KINDS.map(async (kind) => ({
        kind,
        times: results[kind].flatMap(({ times }) => times),
        load: median(results[kind].map(({ loadMs }) => loadMs)),
        peak: median(results[kind].map(({ peakMb }) => peakMb)),
        size: (await stat(files[kind])).size / 1e6,
      })),
    );
    const ratio = (of: (row: (typeof rows)[number]) => number) => {
      const [published, prepared] = rows.map(of);
      return (prepared ?? Number.NaN) / (published ?? Number.NaN);
    };
    return {
      settings: { rounds, 'runs a round': RUNS, threads: cores },
      figures: [
        ...rows.map(({ kind, times }) => measured(`prepare.${kind}.run`, `run, ${kind}`, 'ms', times)),
        computed(
          'prepare.run',
          'run, prepared against published',
          '×',
          ratio(({ times }) => median(times)),
        ),
        computed(
          'prepare.peak',
          'peak memory, prepared against published',
          '×',
          ratio(({ peak }) => peak),
        ),
        computed('prepare.apart', 'largest difference of the mattes', '/255', apart * 255),
      ],
      parts: [
        {
          kind: 'table',
          title: 'Default network',
          columns: ['network', 'file MB', 'load ms', 'run ms', 'peak MiB'],
          rows: rows.map(({ kind, size, load, times, peak }) => [kind, size, load, median(times), peak]),
        },
      ],
    };
  } finally {
    await rm(work, { recursive: true });
  }
}
