// Two networks in one process: node precisionRun.js NAME FLOATS EIGHT THREADS ROUNDS PROFILE FOLDER IMAGE…
// Runs both on every image, writes their mattes as float32 to FOLDER/<n>.floats and .eight, then runs the first
// image ROUNDS times on each, in turn. PROFILE: prefix of the profile of one 8-bit run. Prints one JSON line.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import ort from 'onnxruntime-node';
import { findNetwork, installedCatalogue } from '../../src/models/catalogue.ts';
import { inputOf } from '../../tools/calibrate/image.ts';

const [name = '', floatFile = '', eightFile = '', threads, rounds, profile = '', folder = '', ...images] =
  process.argv.slice(2);
const { input: image } = (await findNetwork(installedCatalogue(), name)).manifest;
const settings = { intraOpNumThreads: Number(threads), interOpNumThreads: 1 };
const open = (file: string, more = {}) => ort.InferenceSession.create(file, { ...settings, ...more });
const networks = { floats: await open(floatFile), eight: await open(eightFile) };
type Name = keyof typeof networks;

async function matte(session: ort.InferenceSession, values: Float32Array): Promise<Float32Array> {
  const [input = ''] = session.inputNames;
  const [output = ''] = session.outputNames;
  const feeds = { [input]: new ort.Tensor('float32', values, [1, 3, image.height, image.width]) };
  const data = (await session.run(feeds, [output]))[output]?.data;
  if (!(data instanceof Float32Array)) throw new Error('output 0 is not float32');
  return data;
}

let first: Float32Array | undefined;
for (const [at, file] of images.entries()) {
  const values = await inputOf(file, image);
  first ??= values;
  for (const name of ['floats', 'eight'] as const satisfies readonly Name[]) {
    const data = await matte(networks[name], values);
    writeFileSync(
      path.join(folder, `${at}.${name}`),
      Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    );
  }
  console.error(`${at + 1} of ${images.length}`);
}
if (!first) throw new Error('no images');
const times: Record<Name, number[]> = { floats: [], eight: [] };
for (let round = 0; round < Number(rounds); round++) {
  for (const name of ['floats', 'eight'] as const) {
    const begin = performance.now();
    await matte(networks[name], first);
    times[name].push(performance.now() - begin);
  }
}
const profiled = await open(eightFile, { enableProfiling: true, profileFilePrefix: profile });
await matte(profiled, first);
profiled.endProfiling();
console.log(JSON.stringify({ times }));
