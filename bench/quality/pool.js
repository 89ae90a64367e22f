import { Worker } from 'node:worker_threads';

const SCRIPT = new URL('scoreWorker.js', import.meta.url);

/** Scores mattes on threads of their own; calls are answered in any order. */
export function openScores(threads) {
  const waiting = [];
  const idle = [];
  const workers = Array.from({ length: Math.max(1, threads) }, () => {
    const worker = new Worker(SCRIPT);
    worker.unref();
    idle.push(worker);
    return worker;
  });
  const next = () => {
    while (idle.length > 0 && waiting.length > 0) {
      const worker = idle.pop();
      const { what, resolve, reject } = waiting.shift();
      worker.ref();
      const done = (settle, value) => {
        worker.off('message', onMessage);
        worker.off('error', onError);
        worker.unref();
        settle(value);
      };
      const onMessage = (result) => {
        idle.push(worker);
        done(resolve, result);
        next();
      };
      const onError = (error) => done(reject, error);
      worker.on('message', onMessage);
      worker.on('error', onError);
      worker.postMessage(what);
    }
  };
  return {
    /** @param {Parameters<typeof import('./metrics/index.js').score>[0]} what copied, not shared */
    score: (what) =>
      new Promise((resolve, reject) => {
        waiting.push({ what, resolve, reject });
        next();
      }),
    close: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}
