// How to share out the cores: one run alone, and eight at a time, for each setting. The picture is tiny, so the
// figures are ONNX Runtime's plus the engine's own hand-over. Every setting gets a fresh process: the memory
// column is its peak.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { inBuild } from '../scripts/setup/paths.js';
import { median, ms, table } from './lib/stats.js';

const PARALLEL = 8;
const self = fileURLToPath(import.meta.url);

/** Workers × threads of a run worth trying on so many cores. */
function settings(cores) {
  const tried = new Map();
  for (const workers of [1, 2, 4, 8].filter((n) => n <= Math.max(2, cores))) {
    for (const threads of [Math.ceil(cores / workers), cores]) {
      tried.set(`${workers} x ${threads}`, { workers, intraOpThreads: threads });
    }
  }
  return [...tried.values()];
}

/** Runs in a process of its own. */
async function measure({ network, setting, rounds }) {
  const { defaultRuntimePath, loadAddon } = await import(inBuild('ts', 'src', 'engine', 'addon.js'));
  const { createEngine } = await import(inBuild('ts', 'src', 'engine', 'engine.js'));
  const engine = createEngine(loadAddon(), {
    runtimePath: defaultRuntimePath(),
    provider: 'cpu',
    deviceId: 0,
    pixelThreads: 1,
    queueLimit: PARALLEL,
    idleReleaseMs: 0,
    ...setting,
  });
  const size = { width: 64, height: 64 };
  const { loadMs, warmUpMs } = await engine.load({
    name: 'isnet',
    path: network,
    width: 1024,
    height: 1024,
    mean: [128, 128, 128],
    std: [256, 256, 256],
    output: 'probability',
  });
  const run = () =>
    engine.matte(
      { data: new Uint8Array(size.width * size.height * 4).fill(255), ...size },
      { network: 'isnet', hiddenColour: 'clear', ...size },
    );
  const alone = [];
  for (let i = 0; i < rounds; i++) alone.push((await run()).inferMs);
  const cpu = process.cpuUsage();
  const start = performance.now();
  let left = rounds * PARALLEL;
  const client = async () => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: PARALLEL }, client));
  const wall = performance.now() - start;
  const used = process.cpuUsage(cpu);
  await engine.close(0);
  return {
    'workers x threads': `${setting.workers} x ${setting.intraOpThreads}`,
    open: ms(loadMs),
    'first run': ms(warmUpMs),
    'one alone': ms(median(alone)),
    [`per image, ${PARALLEL} at once`]: ms(wall / (rounds * PARALLEL)),
    'CPU per image': ms((used.user + used.system) / 1000 / (rounds * PARALLEL)),
    'peak memory': `${Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024)} MB`,
  };
}

/** Prints one row a setting. `network` is the prepared IS-Net. */
export async function threads({ network, rounds }) {
  const rows = [];
  for (const setting of settings(availableParallelism())) {
    const child = fork(self, [JSON.stringify({ network, setting, rounds })]);
    const [row] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`the measuring process ended with ${code}`);
      }),
    ]);
    rows.push(row);
  }
  table(rows);
}

if (process.argv[1] === self && process.send) {
  process.send(await measure(JSON.parse(process.argv[2])));
}
