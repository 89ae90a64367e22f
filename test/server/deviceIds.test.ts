import test from 'ava';
import { loadConfig } from '../../src/config/readConfig.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import { deviceIdsOf, threadsOf } from '../../src/server/openEngine.ts';

const engine = (device: string, ids: string) =>
  loadConfig({ CUTOUT_DEVICE: device, CUTOUT_DEVICE_ID: ids }).engine;

test('the GPUs of the settings; on the CPU none is looked at', (t) => {
  t.deepEqual(deviceIdsOf(engine('cuda', '2,0')), [2, 0]);
  t.deepEqual(deviceIdsOf(engine('cpu', '2,0')), [0]);
  t.deepEqual(deviceIdsOf(engine('cpu', 'all')), [0]);
});

test('all: those that the driver shows, and number 0 where there are none, so that opening it says why', (t) => {
  const count = loadAddon().computeCapabilities().length;
  t.true(Number.isInteger(count) && count >= 0);
  const ids = deviceIdsOf(engine('cuda', 'all'));
  t.is(ids.length, Math.max(1, count));
  t.deepEqual(
    ids,
    ids.map((_, at) => at),
  );
});

test('workers for two full batches on each GPU', (t) => {
  t.is(threadsOf(engine('cuda', '0,1,2')).workers, 48);
});
