import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { type Finding, note, ok, problem } from './finding.ts';

/** Bytes. A network and what is made of it take 0.4 to 1.5 GB. */
const little = 2e9;
const tooLittle = 200e6;

const nearest = (folder: string): string => (existsSync(folder) ? folder : nearest(path.dirname(folder)));

function checkFolder(folder: string, what: string): Finding {
  const place = nearest(folder);
  try {
    accessSync(place, constants.W_OK);
  } catch {
    return problem(
      'disk',
      `This user may not write to ${place}, where ${what} lie.`,
      `chown it, or name another folder.`,
    );
  }
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const said = `${(free / 1e9).toFixed(1)} GB are free for ${what} in ${folder}.`;
  if (free < tooLittle)
    return problem('disk', said, 'Make room: books that cannot be written stop all work.');
  if (free < little) return note('disk', said, 'A network that is prepared anew takes up to 1.5 GB.');
  return ok('disk', said);
}

export const checkDisk = ({ store, engine }: Pick<Config, 'store' | 'engine'>): Finding[] => [
  checkFolder(store.dataDir, 'books'),
  checkFolder(engine.modelsDir, 'networks'),
];
