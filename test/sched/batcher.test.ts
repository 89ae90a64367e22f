import { spawnSync } from 'node:child_process';
import path from 'node:path';
import test from 'ava';
import { root } from '../../bench/lib/paths.ts';

test('threads that share batches, with a device that is lost and comes back: no run is lost or done twice', (t) => {
  const program = path.join(root, 'build', 'native', 'batcher_stress');
  const { status, stderr } = spawnSync(program, ['2'], { encoding: 'utf8' });
  t.is(status, 0, stderr);
});
