// Adapter (bench/peers/README.md) for rembg as a library. `python3` must have rembg installed, or be named by REMBG_PYTHON.
import { pythonPeer } from '../python.js';

const model = process.env.REMBG_MODEL ?? 'isnet-general-use';

export const about = {
  title: `rembg in process (${model})`,
  licence: 'MIT',
  weights: model === 'isnet-general-use' ? 'isnet' : model,
};

export const { prepare, run, close } = pythonPeer({
  program: process.env.REMBG_PYTHON ?? 'python3',
  worker: new URL('worker.py', import.meta.url),
  args: [model],
});
