// Bare ONNX Runtime: runs the prepared network in a loop, nothing else. One process, one session:
//   node bareRun.js NETWORK THREADS SECONDS
// Prints the milliseconds of every run as a JSON array. For comparison only; the server never loads this binding.
import ort from 'onnxruntime-node';

const [file = '', threads, seconds] = process.argv.slice(2);
const session = await ort.InferenceSession.create(file, {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const [input = ''] = session.inputNames;
const [output = ''] = session.outputNames;
const data = new Float32Array(3 * 1024 * 1024);
for (let i = 0; i < data.length; i++) data[i] = (Math.imul(i, 2654435761) >>> 8) / 2 ** 24 - 0.5;
const feeds = { [input]: new ort.Tensor('float32', data, [1, 3, 1024, 1024]) };
await session.run(feeds, [output]);
const times: number[] = [];
const end = performance.now() + Number(seconds) * 1000;
while (performance.now() < end) {
  const started = performance.now();
  await session.run(feeds, [output]);
  times.push(performance.now() - started);
}
console.log(JSON.stringify(times));
