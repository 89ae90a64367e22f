// Whole requests (JPEG in, PNG out, full size) against the peer with the same weights and against bare runs
// of the network, in turn and in one run. Times include HTTP on loopback.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inRoot } from '../scripts/setup/paths.js';
import { bareRuns } from './lib/bare.js';
import { photo, pictureNames } from './lib/pictures.js';
import { startServer } from './lib/server.js';
import { median, ms, ratio, table } from './lib/stats.js';

const peerFolder = inRoot('bench', 'peers', 'imgly');

function peer(file, runs, out) {
  const child = spawn(process.execPath, ['peer.js', String(runs), out, file], {
    cwd: peerFolder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((resolve, reject) =>
    child.on('close', (code) =>
      code === 0
        ? resolve(
            text
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line).ms),
          )
        : reject(new Error(`the peer ended with ${code}`)),
    ),
  );
}

/** Milliseconds of each stage, from the answer's Server-Timing header. */
function stages(headers) {
  const entries = (headers.get('server-timing') ?? '')
    .split(',')
    .map((entry) => /^\s*([\w-]+);dur=([\d.]+)/.exec(entry));
  return Object.fromEntries(entries.filter(Boolean).map(([, name, duration]) => [name, Number(duration)]));
}

export async function requests({ megapixels, rounds, network }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-bench-'));
  const withPeer = existsSync(path.join(peerFolder, 'node_modules'));
  if (!withPeer)
    console.log(
      'The peer is not installed (npm ci --ignore-scripts in bench/peers/imgly): measured without it.',
    );
  const server = await startServer();
  const rows = [];
  try {
    const cases = pictureNames().flatMap((name) => megapixels.map((size) => ({ name, size })));
    for (const { name, size } of cases) {
      const bytes = await photo(size, name);
      const file = path.join(folder, `${name}-${size}mp.jpg`);
      writeFileSync(file, bytes);
      const ours = [];
      const infer = [];
      const theirs = [];
      const bare = [];
      await server.cutout(bytes, { size: '50MP', format: 'png' });
      for (let round = 0; round < rounds; round++) {
        // Each request differs in one byte after the end of the picture, so that no kept result can answer.
        const answer = await server.cutout(Buffer.concat([bytes, Buffer.from([round])]), {
          size: '50MP',
          format: 'png',
        });
        ours.push(answer.ms);
        infer.push(stages(answer.headers).infer ?? Number.NaN);
        console.log(
          `${name} ${size} MP round ${round + 1}: ${ms(answer.ms)}  ${answer.headers.get('server-timing')}  ${answer.body.length} bytes`,
        );
        bare.push(...(await bareRuns(network, { processes: 1, threads: 2, seconds: 3 })).times);
        if (withPeer && (size <= 4 || round < 2)) theirs.push(...(await peer(file, 1, folder)));
      }
      const own = median(ours);
      const run = median(infer);
      rows.push({
        picture: name,
        MP: size,
        ours: ms(own),
        'network in it': ms(run),
        'outside / network': ratio((own - run) / run),
        'bare run': ms(median(bare)),
        'ours / bare': ratio(own / median(bare)),
        peer: theirs.length > 0 ? ms(median(theirs)) : '-',
        'ours / peer': theirs.length > 0 ? ratio(own / median(theirs)) : '-',
      });
    }
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  table(rows);
}
