// The engine alone in a process: node engineMemory.js NAME FILE THREADS RUNS. Opens the network's optimised copy, or
// makes it, runs RUNS images of 1 MP and prints one JSON line: MB resident before the engine, after the runs, and at the
// peak, and the median of the runs. Images and results are collected after each run: they are not the network's.
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadAddon } from '../../src/engine/addon.ts';
import { loadOptimised, openEngine } from './engine.ts';
import { median } from './stats.ts';

const [network = '', file = '', threads, runs] = process.argv.slice(2);
const megabytes = (field: string) =>
  (Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1024) /
  1e6;
setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;
loadAddon();
const size = { width: 1200, height: 833 };
const data = new Uint8Array(size.width * size.height * 4);
for (let i = 0; i < data.length; i++)
  data[i] = (i & 3) === 3 ? 255 : (Math.imul(i >> 2, 2654435761) >>> 24) & 127;
const before = megabytes('VmRSS');
const engine = openEngine(Number(threads));
await loadOptimised(engine, network, file);
const times: number[] = [];
for (let run = 0; run < Number(runs); run++) {
  const image = Uint8Array.from(data);
  const plan = { network, hiddenColour: 'clear', ...size } as const;
  times.push((await engine.matte({ data: image, ...size }, plan)).inferMs);
  collect();
}
console.log(
  JSON.stringify({ before, after: megabytes('VmRSS'), peak: megabytes('VmHWM'), runMs: median(times) }),
);
await engine.close(0);
