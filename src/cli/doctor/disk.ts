import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config/readConfig.ts';
import { type Finding, note, ok, problem } from './finding.ts';

/** Bytes. A network and its prepared files take 0.4 to 1.5 GB. */
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
      `This user cannot write to ${place}, the folder of ${what}.`,
      `Change its owner, or configure another folder.`,
    );
  }
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const said = `${(free / 1e9).toFixed(1)} GB are free for ${what} in ${folder}.`;
  if (free < tooLittle)
    return problem(
      'disk',
      said,
      'Free some space: the service stops working when the database cannot be written.',
    );
  if (free < little) return note('disk', said, 'Preparing a network takes up to 1.5 GB.');
  return ok('disk', said);
}

export const checkDisk = ({ store, engine }: Pick<Config, 'store' | 'engine'>): Finding[] => [
  checkFolder(store.dataDir, 'ledger'),
  checkFolder(engine.modelsDir, 'networks'),
];
