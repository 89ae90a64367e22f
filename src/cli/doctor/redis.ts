import { compareClocks } from './clock.ts';
import { type Finding, note, ok, problem, reasonOf } from './finding.ts';

/** Checks Redis: reachable, recent enough, and configured not to lose data. */
export async function checkRedis(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return [];
  // Its library is loaded only if used.
  const { Redis } = await import('../../store/redis.ts');
  const warnings: Finding[] = [];
  let redis: Awaited<ReturnType<typeof Redis.open>>;
  try {
    redis = await Redis.open({ url, onChange: () => {} }, (message) =>
      warnings.push(
        note(
          'redis',
          message,
          'Run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file.',
        ),
      ),
    );
  } catch (error) {
    return [problem('redis', reasonOf(error), 'Limits, sessions and cached results need it.')];
  }
  try {
    const ask = async () => {
      const [seconds, microseconds] = (await redis.commands.send(['TIME'])) as [string, string];
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    };
    return [ok('redis', 'Redis answers.'), ...warnings, await compareClocks('Redis', ask)];
  } catch (error) {
    return [problem('redis', reasonOf(error), 'See the log of Redis.')];
  } finally {
    redis.close();
  }
}
