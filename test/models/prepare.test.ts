import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Worker } from 'node:worker_threads';
import test from 'ava';
import type { Form } from '../../src/compiler/form.ts';
import { networkFiles } from '../../src/models/layout.ts';
import { prepareNetwork } from '../../src/models/prepare.ts';
import { pullNetwork } from '../../src/models/pull.ts';
import { READY, readPrepared, type Workplace, workplace } from '../fixtures/networks.ts';

/** The task of preparing the tiny network, which is pulled and prepared. */
async function pulled(place: Workplace, form: Form = 'fp32') {
  const entry = await place.entry({ kind: 'file', path: 'published.onnx' });
  await pullNetwork(entry, place.options());
  return { modelsDir: place.modelsDir, entry, form };
}

const newWorker = async (): Promise<Worker> => (await once(process, 'worker'))[0] as Worker;

test.serial('a network is prepared in a thread of its own, which has ended then', async (t) => {
  const place = await workplace(t);
  const task = await pulled(place);
  const before = await readPrepared(place.modelsDir);
  const worker = newWorker();
  const record = await prepareNetwork(task);
  t.is((await worker).threadId, -1, 'the thread of a worker that has ended has no number');
  t.is(record.bytes, before.length);
  t.deepEqual(await readPrepared(place.modelsDir), before);
});

test.serial('errors of that thread are those of the caller', async (t) => {
  const place = await workplace(t);
  const { entry, ...task } = await pulled(place);
  await t.throwsAsync(prepareNetwork({ ...task, entry, form: 'int8' }), {
    name: 'ModelError',
    code: 'MODEL_UNSUPPORTED',
  });
  const { prepared } = networkFiles(place.modelsDir, entry.manifest, 'tensorrt');
  await mkdir(path.join(prepared, 'in the way'), { recursive: true });
  await t.throwsAsync(prepareNetwork({ ...task, entry, form: 'tensorrt' }), {
    any: true,
    instanceOf: Error,
    code: 'EISDIR',
  });
});

test.serial('a preparation that is aborted ends at once, and can be repeated', async (t) => {
  const place = await workplace(t);
  const task = await pulled(place);
  const stopping = new AbortController();
  const reason = new Error('stopped');
  const worker = newWorker();
  const aborted = t.throwsAsync(prepareNetwork(task, stopping.signal), { is: reason });
  stopping.abort(reason);
  await aborted;
  t.is((await worker).threadId, -1);
  await t.throwsAsync(prepareNetwork(task, stopping.signal), { is: reason });
  await pullNetwork(task.entry, place.options());
  t.deepEqual(await place.files(), READY);
  t.deepEqual(
    JSON.parse(await readFile(path.join(place.modelsDir, 'tiny', 'prepared.json'), 'utf8')).bytes,
    (await readPrepared(place.modelsDir)).length,
  );
});
