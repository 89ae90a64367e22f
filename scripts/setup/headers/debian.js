import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fieldOf } from '../distribution.js';
import { inBuild } from '../paths.js';
import { runProgram, SetupError } from '../step.js';

/** First Debian release whose libonnxruntime-dev is new enough (local.js); older ones ask it for the headers only. */
const SUITE = 'forky';

/** Entries of this machine's package sources, both file formats. */
export function parseSources(text, deb822) {
  if (!deb822) {
    return text
      .split('\n')
      .map((line) => /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)$/.exec(line))
      .filter(Boolean)
      .map(([, options, uri, suite, components]) => ({
        uri,
        suites: [suite],
        components: components.split(/\s+/),
        signedBy: /signed-by=(\S+)/.exec(options ?? '')?.[1],
      }));
  }
  return text.split(/\n\s*\n/).map((paragraph) => {
    const field = (name) => new RegExp(`^${name}:\\s*(.*)$`, 'im').exec(paragraph)?.[1]?.trim();
    return {
      uri: field('URIs')?.split(/\s+/)[0],
      suites: field('Suites')?.split(/\s+/) ?? [],
      components: field('Components')?.split(/\s+/) ?? [],
      signedBy: field('Signed-By'),
    };
  });
}

/** One source line for the suite that has the package, derived from the machine's own Debian source. */
export function sourceLine(entries, codename) {
  const own = entries.find((e) => e.uri && e.components.includes('main') && e.suites.includes(codename));
  if (!own) return undefined;
  const signed = own.signedBy ? `[signed-by=${own.signedBy}] ` : '';
  return `deb ${signed}${own.uri} ${SUITE} main\n`;
}

/** The machine's package sources. */
export function machineSources() {
  const entries = [];
  const read = (file, deb822) => {
    if (existsSync(file)) entries.push(...parseSources(readFileSync(file, 'utf8'), deb822));
  };
  read('/etc/apt/sources.list', false);
  const folder = '/etc/apt/sources.list.d';
  for (const name of existsSync(folder) ? readdirSync(folder).sort() : []) {
    if (name.endsWith('.list')) read(path.join(folder, name), false);
    if (name.endsWith('.sources')) read(path.join(folder, name), true);
  }
  return entries;
}

/**
 * The source line for the package on Debian itself: derivatives have mirrors of their own,
 * without Debian's releases. Undefined elsewhere.
 */
export const debianSource = (osRelease, entries) =>
  fieldOf(osRelease, 'ID') === 'debian'
    ? sourceLine(entries, fieldOf(osRelease, 'VERSION_CODENAME'))
    : undefined;

/** Fetches libonnxruntime-dev into the folder `target`. Needs no root and changes no system file. */
export async function fetchFromDebian(line, target, progress) {
  const work = inBuild('tmp', 'headers');
  await rm(work, { recursive: true, force: true });
  await mkdir(path.join(work, 'lists', 'partial'), { recursive: true });
  await mkdir(path.join(work, 'cache', 'archives', 'partial'), { recursive: true });
  await writeFile(path.join(work, 'sources.list'), line);
  const options = [
    `Dir::Etc::sourcelist=${work}/sources.list`,
    'Dir::Etc::sourceparts=-',
    `Dir::State::Lists=${work}/lists`,
    `Dir::Cache=${work}/cache`,
    // apt run by root drops to user _apt, who may not be allowed into this folder.
    `APT::Sandbox::User=${process.getuid?.() === 0 ? 'root' : ''}`,
  ].flatMap((option) => ['-o', option]);
  await runProgram('headers-update', 'apt-get', [...options, 'update'], { cwd: work, progress });
  const wanted = `libonnxruntime-dev/${SUITE}`;
  await runProgram('headers-download', 'apt-get', [...options, 'download', wanted], { cwd: work, progress });
  const archive = (await readdir(work)).find((name) => name.endsWith('.deb'));
  if (!archive) throw new SetupError('apt-get download left no package file.');
  await runProgram('headers-unpack', 'dpkg-deb', ['-x', archive, 'unpacked'], { cwd: work, progress });
  const unpacked = path.join(work, 'unpacked', 'usr', 'include', 'onnxruntime');
  if (!existsSync(path.join(unpacked, 'onnxruntime_c_api.h')))
    throw new SetupError('libonnxruntime-dev no longer holds the headers where they were.');
  // Atomic: incomplete headers would count as present.
  const draft = `${target}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await cp(unpacked, draft, { recursive: true });
  await rm(target, { recursive: true, force: true });
  await rename(draft, target);
  await rm(work, { recursive: true, force: true });
}
