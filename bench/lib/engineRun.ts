// Bare runs of a network as the server makes them, with Cutout's operators where the file has them: one process, one
// worker, an image so small that nothing else counts:
//   node engineRun.js NETWORK THREADS SECONDS
// Prints the milliseconds of every run as a JSON array.
import { loadIsnet, openEngine } from './engine.ts';

const [network = '', threads, seconds] = process.argv.slice(2);
const engine = openEngine(Number(threads));
await loadIsnet(engine, network);
const size = { width: 64, height: 64 };
const run = () =>
  engine.matte(
    { data: new Uint8Array(size.width * size.height * 4).fill(255), ...size },
    { network: 'isnet', hiddenColour: 'clear', ...size },
  );
await run();
const times: number[] = [];
const end = performance.now() + Number(seconds) * 1000;
while (performance.now() < end) {
  const started = performance.now();
  await run();
  times.push(performance.now() - started);
}
await engine.close(0);
console.log(JSON.stringify(times));
