// Adapter (bench/peers/README.md) for CarveKit. `python3` must have it installed, or be named by CARVEKIT_PYTHON.
import { pythonPeer } from '../python.js';

const weights = process.env.PEER_WEIGHTS === 'random' ? 'random' : 'tracer-b7, fba';

export const about = { title: 'CarveKit', licence: 'Apache-2.0', weights };

export const { prepare, run, close } = pythonPeer({
  program: process.env.CARVEKIT_PYTHON ?? 'python3',
  worker: new URL('worker.py', import.meta.url),
  args: [weights],
});
