import type { Config } from '../../config/readConfig.ts';
import { checkDatabase } from './database.ts';
import { checkDisk } from './disk.ts';
import type { Finding } from './finding.ts';
import { checkLimits } from './limits.ts';
import { checkRedis } from './redis.ts';
import { checkExposure, checkServer } from './server.ts';

/** Checks the environment of a server with these settings, whether or not one is running. Changes nothing. */
export async function checkInstall(config: Config): Promise<Finding[]> {
  const [database, redis, server] = await Promise.all([
    checkDatabase(config.store),
    checkRedis(config.redis.url),
    checkServer(config.http),
  ]);
  return [
    ...server,
    ...database,
    ...redis,
    ...checkDisk(config),
    ...checkLimits(config),
    ...checkExposure(config),
  ];
}
