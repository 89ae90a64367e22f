// npm run bench -- NAME: prints measured figures. Nothing here is a test.
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { inRoot } from '../scripts/setup/paths.js';
import { load } from './load.js';
import { memoryPeaks } from './memory.js';
import { prepared } from './prepare.js';
import { requests } from './requests.js';
import { threads } from './threads.js';

const models = process.env.CUTOUT_MODELS_DIR ?? inRoot('data', 'models');
const network = path.join(models, 'isnet', 'prepared.onnx');

const benches = {
  requests: () => requests({ megapixels: [1, 12], rounds: 5, network }),
  load: () => load({ network, seconds: 30, cores: availableParallelism() }),
  threads: () => threads({ network, rounds: 3 }),
  memory: () => memoryPeaks({ megapixels: [12, 25, 48] }),
  prepare: () =>
    prepared({ folder: path.dirname(network), rounds: 3, runs: 3, cores: availableParallelism() }),
};

const name = process.argv[2] ?? '';
const bench = benches[name];
if (bench) await bench();
else {
  console.error(`npm run bench -- ${Object.keys(benches).join(' | ')}`);
  process.exitCode = 1;
}
