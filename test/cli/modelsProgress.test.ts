import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { progressOn } from '../../src/cli/modelsProgress.ts';
import type { Progress } from '../../src/models/observer.ts';

async function printed(steps: readonly Progress[]): Promise<string[]> {
  const out = new PassThrough();
  const observer = progressOn(out, 'first');
  for (const step of steps) observer.progress(step);
  observer.done();
  out.end();
  return (await text(out)).trimEnd().split('\n');
}

test('the progress of networks that are fetched at a time names each and is not mixed up', async (t) => {
  const network = 'second';
  const lines = await printed([
    { phase: 'download', network: 'first' },
    { phase: 'download', network },
    { phase: 'unpack', network, bytes: 0, total: 4e6 },
    { phase: 'unpack', network: 'first', bytes: 10e6, total: 20e6 },
    { phase: 'unpack', network, bytes: 4e6, total: 4e6 },
    { phase: 'unpack', network: 'first', bytes: 10.1e6, total: 20e6 },
    { phase: 'prepare', network },
    { phase: 'unpack', network: 'first', bytes: 20e6, total: 20e6 },
    { phase: 'prepare', network: 'first' },
  ]);
  t.deepEqual(lines, [
    'first: downloading …',
    'second: downloading …',
    'second: unpacking: 0.0 of 4.0 MB',
    'first: unpacking: 10.0 of 20.0 MB',
    'second: unpacking: 4.0 of 4.0 MB',
    'second: preparing …',
    'first: unpacking: 20.0 of 20.0 MB',
    'first: preparing …',
  ]);
});

test('progress that names no network is that of the one the observer was made for', async (t) => {
  t.deepEqual(await printed([{ phase: 'wait' }, { phase: 'download' }, { phase: 'download' }]), [
    'first: waiting for another process that downloads this network …',
    'first: downloading …',
  ]);
});
