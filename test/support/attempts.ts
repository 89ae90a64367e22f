import { Attempts } from '../../src/limits/attempts.ts';
import { systemClock } from '../../src/limits/clock.ts';
import { InMemoryRateLimit } from '../../src/limits/inMemoryRate.ts';

/** Failed attempts of one process: so many a minute; 0: no limit. */
export const attemptsOf = (limit: number): Attempts =>
  new Attempts(new InMemoryRateLimit({ limit, windowSeconds: 60 }, systemClock));
