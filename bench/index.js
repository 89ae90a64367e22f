// npm run bench -- NAME [--mp 1,12] [--rounds 5] [--seconds 30]: prints measured figures. Nothing here is a test.
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { inRoot } from '../scripts/setup/paths.js';
import { load } from './load.js';
import { memoryPeaks } from './memory.js';
import { prepared } from './prepare.js';
import { repeats } from './repeats.js';
import { requests } from './requests.js';
import { threads } from './threads.js';

const models = process.env.CUTOUT_MODELS_DIR ?? inRoot('data', 'models');
const network = path.join(models, 'isnet', 'prepared.onnx');

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { mp: { type: 'string' }, rounds: { type: 'string' }, seconds: { type: 'string' } },
});
const megapixels = (usual) => (values.mp ? values.mp.split(',').map(Number) : usual);
const rounds = (usual) => Number(values.rounds ?? usual);
const seconds = Number(values.seconds ?? 30);
const cores = availableParallelism();

const benches = {
  requests: () => requests({ megapixels: megapixels([1, 12]), rounds: rounds(5), network }),
  load: () => load({ network, seconds, cores }),
  threads: () => threads({ network, rounds: rounds(3) }),
  repeats: () => repeats({ megapixels: [0.06, 1], seconds: 5 }),
  memory: () => memoryPeaks({ megapixels: megapixels([12, 25, 48]) }),
  prepare: () => prepared({ folder: path.dirname(network), rounds: rounds(3), runs: 3, cores }),
  kernels: () => import('./kernels.js'),
  png: () => import('./png.js'),
};

const bench = benches[positionals[0] ?? ''];
if (bench) await bench();
else {
  console.error(`npm run bench -- ${Object.keys(benches).join(' | ')}`);
  process.exitCode = 1;
}
