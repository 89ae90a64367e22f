/**
 * Runs a network in a separate process, because the server's process must never load onnxruntime-node.
 * usage: node runOnnx.js NETWORK INPUTS OUTPUT BATCH [all | first [HEIGHT WIDTH]]
 * INPUTS holds float32 values of [n,3,H,W], OUTPUT gets those of output 0 of every run, BATCH images a
 * run. With `all`, every output is fetched. HEIGHT and WIDTH of the images are 1024 where neither they nor the file
 * say otherwise. Prints one JSON line.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import * as ort from 'onnxruntime-node';

const [network = '', inputs = '', output = '', batchText = '1', fetched, ...given] = process.argv.slice(2);
const batch = Number(batchText);
const started = performance.now();
const session = await ort.InferenceSession.create(network, {
  intraOpNumThreads: 2,
  // Exact on every processor; slower than native/ort/session.h where there are dot products. Threads sleep while they wait.
  extra: { session: { x64quantprecision: '1', intra_op: { allow_spinning: '0' } } },
});
const loadMs = performance.now() - started;

const [metadata] = session.inputMetadata;
const [input, first] = [session.inputNames[0], session.outputNames[0]];
if (!metadata?.isTensor || input === undefined || first === undefined) throw new Error('no tensor input');
const declared = metadata.shape.slice(2).map((dim) => (typeof dim === 'number' && dim > 0 ? dim : 1024));
const [height = 0, width = 0] = given.length === 2 ? given.map(Number) : declared;

const bytes = readFileSync(inputs);
const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
const each = 3 * height * width;
const runMs: number[] = [];
const chunks: Buffer[] = [];
for (let at = 0; at < values.length; at += each * batch) {
  const data = values.slice(at, at + each * batch);
  const tensor = new ort.Tensor('float32', data, [data.length / each, 3, height, width]);
  const begin = performance.now();
  const results = await session.run({ [input]: tensor }, fetched === 'all' ? session.outputNames : [first]);
  runMs.push(performance.now() - begin);
  const alpha = results[first]?.data;
  if (!(alpha instanceof Float32Array)) throw new Error('output 0 is not of 32-bit floats');
  chunks.push(Buffer.from(alpha.buffer, alpha.byteOffset, alpha.byteLength));
}
if (output !== '') writeFileSync(output, Buffer.concat(chunks));
const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
console.log(
  JSON.stringify({ loadMs, runMs, peakMb: Number(peak) / 1024, outputs: session.outputNames, height, width }),
);
