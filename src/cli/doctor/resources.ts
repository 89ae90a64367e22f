import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config/readConfig.ts';
import { availableCores } from '../../engine/threads.ts';
import { describeAllocator, memoryLimit } from '../../ops/memory.ts';
import { threadsOf } from '../../server/openEngine.ts';
import { type Finding, judged, note, ok, problem } from './finding.ts';

/** Bytes. A network and its prepared files take 0.4 to 1.5 GB. */
const little = 2e9;
const tooLittle = 200e6;

const nearest = (folder: string): string => (existsSync(folder) ? folder : nearest(path.dirname(folder)));

function checkFolder(folder: string, what: string): Finding {
  const place = nearest(folder);
  try {
    accessSync(place, constants.W_OK);
  } catch {
    const said = `This user cannot write to ${place}, the folder of ${what}.`;
    return problem('disk', said, 'Change its owner, or configure another folder.');
  }
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const said = `${(free / 1e9).toFixed(1)} GB are free for ${what} in ${folder}.`;
  const full = 'Free some space: the service stops working when the database cannot be written.';
  if (free < tooLittle) return problem('disk', said, full);
  return judged(free >= little, 'disk', said, 'Preparing a network takes up to 1.5 GB.');
}

export const checkDisk = ({ store, engine }: Pick<Config, 'store' | 'engine'>): Finding[] => [
  checkFolder(store.dataDir, 'ledger'),
  checkFolder(engine.modelsDir, 'networks'),
];

/** File descriptors: one per connection, and about a hundred of its own. */
const fewFiles = 4096;
/** Bytes that suffice for images of every size (docs/operations.md). */
const enoughMemory = 2e9;

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

function checkFiles(): Finding[] {
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(read('/proc/self/limits'))?.[1];
  if (limit === undefined) return [];
  const said = `${limit} file descriptors.`;
  const isFine = limit === 'unlimited' || Number(limit) >= fewFiles;
  return [judged(isFine, 'limits', said, 'ulimit -n 65536; LimitNOFILE=65536 in a systemd unit.')];
}

/** More threads than processors reduce throughput (decision 0010). */
function checkCores(config: Config['engine']): Finding[] {
  if (config.device !== 'cpu') return [];
  const cores = availableCores();
  const { workers, intraOpThreads } = threadsOf(config);
  const wanted = workers * intraOpThreads;
  const said = `${cores} processors are available; networks run on ${wanted} threads.`;
  return [judged(wanted <= cores, 'limits', said, 'Leave CUTOUT_WORKERS and CUTOUT_THREADS at auto.')];
}

/** `libraryFolders`: where to look for jemalloc. */
function checkMemory(requested: Config['limits']['memory'], libraryFolders: readonly string[]): Finding[] {
  const { bytes, from } = memoryLimit(requested);
  const said = `${(bytes / 1e9).toFixed(1)} GB may be used (${from}).`;
  const allocator = describeAllocator();
  const installed = libraryFolders.some((folder) => existsSync(`${folder}/libjemalloc.so.2`));
  return [
    judged(
      bytes >= enoughMemory,
      'memory',
      said,
      'Large images will be refused with 503; 2 GB are enough for all sizes.',
    ),
    allocator !== undefined || installed
      ? ok('memory', `Freed memory is returned to the system: ${allocator ?? 'jemalloc is installed'}.`)
      : note(
          'memory',
          'jemalloc is not installed: freed memory is returned to the system late.',
          "Install your system's jemalloc (libjemalloc2 in Debian, Ubuntu and openSUSE, jemalloc in Fedora and Arch Linux).",
        ),
  ];
}

const multiarch: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

/** The folders in which scripts/setup/process.js looks for jemalloc. */
const systemFolders: readonly string[] = [
  `/usr/lib/${multiarch[process.arch] ?? ''}-linux-gnu`,
  '/usr/lib64',
  '/usr/lib',
  '/usr/local/lib',
];

export const checkLimits = (
  { engine, limits }: Pick<Config, 'engine' | 'limits'>,
  libraryFolders: readonly string[] = systemFolders,
): Finding[] => [...checkFiles(), ...checkCores(engine), ...checkMemory(limits.memory, libraryFolders)];
