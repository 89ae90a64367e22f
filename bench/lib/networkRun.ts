// One network in one process: node networkRun.js NETWORK INPUTS ALPHA THREADS RUNS
// INPUTS: float32 [n,3,1024,1024]; output 0 of every image is written to ALPHA. Then the first image is run RUNS
// times and timed. Prints one JSON line. Published files are run with all their outputs, as published.
import { readFileSync, writeFileSync } from 'node:fs';
import ort from 'onnxruntime-node';

const [network = '', inputs = '', alpha = '', threads, runs] = process.argv.slice(2);
const peak = () => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;

const bytes = readFileSync(inputs);
const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
const before = peak();
const started = performance.now();
const session = await ort.InferenceSession.create(network, { intraOpNumThreads: Number(threads) });
const loadMs = performance.now() - started;
const [input = ''] = session.inputNames;
const [output = ''] = session.outputNames;
const each = 3 * 1024 * 1024;
const feeds = (at: number) => ({
  [input]: new ort.Tensor('float32', values.subarray(at, at + each), [1, 3, 1024, 1024]),
});
const alphas: Buffer[] = [];
for (let at = 0; at < values.length; at += each) {
  const data = (await session.run(feeds(at)))[output]?.data;
  if (!(data instanceof Float32Array)) throw new Error(`output 0 of ${network} is not float32`);
  alphas.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
}
const times: number[] = [];
for (let run = 0; run < Number(runs); run++) {
  const begin = performance.now();
  await session.run(feeds(0));
  times.push(performance.now() - begin);
}
writeFileSync(alpha, Buffer.concat(alphas));
console.log(JSON.stringify({ loadMs, times, peakMb: peak() - before }));
