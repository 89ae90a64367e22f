import { parentPort } from 'node:worker_threads';
import { score } from './metrics/index.js';

parentPort?.on('message', (what) => parentPort.postMessage(score(what)));
