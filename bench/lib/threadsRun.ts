// One setting of the engine in a separate process: node threadsRun.js NETWORK WORKERS THREADS ROUNDS PARALLEL
// Prints one JSON line.
import { readFileSync } from 'node:fs';
import { loadIsnet, openEngine } from './engine.ts';

const [network = '', workers, threads, rounds, parallel] = process.argv.slice(2);
const engine = openEngine(Number(threads), {
  workers: Number(workers),
  pixelThreads: 1,
  queueLimit: Number(parallel),
});
const size = { width: 64, height: 64 };
const { loadMs, warmUpMs } = await loadIsnet(engine, network);
const run = () =>
  engine.matte(
    { data: new Uint8Array(size.width * size.height * 4).fill(255), ...size },
    { network: 'isnet', hiddenColour: 'clear', ...size },
  );
const alone: number[] = [];
for (let i = 0; i < Number(rounds); i++) alone.push((await run()).inferMs);
const cpu = process.cpuUsage();
const start = performance.now();
const images = Number(rounds) * Number(parallel);
let left = images;
const client = async () => {
  while (left-- > 0) await run();
};
await Promise.all(Array.from({ length: Number(parallel) }, client));
const wall = performance.now() - start;
const used = process.cpuUsage(cpu);
await engine.close(0);
console.log(
  JSON.stringify({
    loadMs,
    warmUpMs,
    alone,
    together: wall / images,
    processor: (used.user + used.system) / 1000 / images,
    peak: (Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024) / 1e6,
  }),
);
