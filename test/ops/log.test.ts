import { openSync } from 'node:fs';
import test from 'ava';
import { openLog } from '../../src/ops/log.ts';

test('lines of a log that cannot be written are dropped and counted', (t) => {
  const { logger, dropped } = openLog('info', openSync('/dev/full', 'w'));
  for (let i = 0; i < 500; i++) t.notThrows(() => logger.info('line'));
  t.is(dropped(), 500);
});
