// Adapter (bench/peers/README.md) for transparent-background. `python3` must have it installed, or be named by
// TRANSPARENT_BACKGROUND_PYTHON.
import { pythonPeer } from '../python.js';

const weights = process.env.PEER_WEIGHTS === 'random' ? 'random' : 'inspyrenet';

export const about = { title: 'transparent-background', licence: 'MIT', weights };

export const { prepare, run, close } = pythonPeer({
  program: process.env.TRANSPARENT_BACKGROUND_PYTHON ?? 'python3',
  worker: new URL('worker.py', import.meta.url),
  args: [weights],
});
