import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { type Open, openOnDevice } from '../../src/cli/modelsOnDevice.ts';
import { loadConfig } from '../../src/config/readConfig.ts';
import { EngineError } from '../../src/engine/types.ts';
import { FakeEngine } from '../fixtures/fakeEngine.ts';
import { gpu } from '../fixtures/gpu.ts';

const signal = new AbortController().signal;

/** What is printed when the engines of IS-Net are built by `open`; rejects as it does. */
async function built(open: Open, device: 'cuda' | 'tensorrt' = 'tensorrt'): Promise<string> {
  const out = new PassThrough();
  const printed = text(out);
  try {
    await openOnDevice('isnet', device, loadConfig({ CUTOUT_BATCH_MAX: '4' }), { out, signal, open });
  } finally {
    out.end();
  }
  return printed;
}

test('engines are built with the settings of a server, for this network alone', async (t) => {
  let closed = 0;
  const engine = {
    ...new FakeEngine().asEngine(),
    gpus: () => [gpu],
    close: async () => {
      closed += 1;
    },
  };
  const printed = await built(async (config, { pull, observer }) => {
    t.is(config.device, 'tensorrt');
    t.is(config.model, 'isnet');
    t.is(config.secondModel, 'off');
    t.is(config.batchMax, 4);
    t.false(pull);
    observer.notice('TensorRT builds.');
    const step = { network: 'isnet', device: 0, batch: 2, step: 2, steps: 3, seconds: 61.4 };
    observer.progress({ phase: 'open', network: 'isnet', step });
    return { engine, threads: { workers: 1, intraOpThreads: 1, pixelThreads: 1 } };
  });
  t.regex(
    printed,
    /^TensorRT builds\.\nOpening isnet for batches of 2 on device 0, step 2 of 3 …\nThe TensorRT engines of isnet are ready and have run on GPU 0 \(NVIDIA L4\) \(\d+\.\d s\)\.\n$/,
  );
  t.is(closed, 1);
});

test('for CUDA the network is run on every GPU', async (t) => {
  const engine = { ...new FakeEngine().asEngine(), gpus: () => [gpu, { ...gpu, id: 3 }] };
  const printed = await built(async (config) => {
    t.is(config.device, 'cuda');
    return { engine, threads: { workers: 1, intraOpThreads: 1, pixelThreads: 1 } };
  }, 'cuda');
  t.regex(printed, /^isnet has run on GPU 0 \(NVIDIA L4\), GPU 3 \(NVIDIA L4\) \(\d+\.\d s\)\.\n$/);
});

test('what keeps an engine from being built reaches the operator', async (t) => {
  const missing = new EngineError('ENGINE_DRIVER', 'The NVIDIA driver is not installed.');
  await t.throwsAsync(
    built(async () => {
      throw missing;
    }),
    { is: missing },
  );
});
