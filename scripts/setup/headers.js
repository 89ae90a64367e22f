import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { inBuild } from './paths.js';
import { runProgram, SetupError } from './step.js';

const HEADER = 'onnxruntime_c_api.h';
/** First Debian release that has libonnxruntime-dev; older ones ask it for the headers only. */
const DEBIAN_SUITE = 'trixie';

const fetched = inBuild('onnxruntime');

/** Folders that may hold the headers without fetching anything, best first. */
function localFolders() {
  const folders = [process.env.ONNXRUNTIME_INCLUDE_DIR];
  try {
    const flags = execFileSync('pkg-config', ['--cflags-only-I', 'libonnxruntime'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for (const flag of flags.trim().split(/\s+/)) folders.push(flag.slice(2));
  } catch {
    // No pkg-config or no such package: the fixed places below remain.
  }
  folders.push('/usr/include/onnxruntime', '/usr/local/include/onnxruntime', fetched);
  return folders.filter((folder) => folder && existsSync(path.join(folder, HEADER)));
}

/** Folder with ONNX Runtime's C header, or undefined when it has to be fetched first. */
export function findHeaders() {
  const wanted = process.env.ONNXRUNTIME_INCLUDE_DIR;
  if (wanted && !existsSync(path.join(wanted, HEADER))) {
    throw new SetupError(`ONNXRUNTIME_INCLUDE_DIR is '${wanted}', but ${HEADER} is not in that folder.`);
  }
  return localFolders()[0];
}

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

/** One source line for the suite that has the package, made from the machine's own Debian source. */
export function sourceLine(entries, codename) {
  const own = entries.find((e) => e.uri && e.components.includes('main') && e.suites.includes(codename));
  if (!own) return undefined;
  const signed = own.signedBy ? `[signed-by=${own.signedBy}] ` : '';
  return `deb ${signed}${own.uri} ${DEBIAN_SUITE} main\n`;
}

/** Where this machine's packages come from. */
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

const ADVICE = `Put the header files of ONNX Runtime 1.21 or newer into a folder and name it in ONNXRUNTIME_INCLUDE_DIR.`;

/** Fetches libonnxruntime-dev from Debian into the build folder. Needs no root and changes no system file. */
export async function fetchHeaders(progress) {
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const line = sourceLine(machineSources(), codename);
  if (!line)
    throw new SetupError(
      `ONNX Runtime's headers are not on this machine and it has no Debian package source. ${ADVICE}`,
    );
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
  try {
    await runProgram('headers-update', 'apt-get', [...options, 'update'], { cwd: work, progress });
    await runProgram(
      'headers-download',
      'apt-get',
      [...options, 'download', `libonnxruntime-dev/${DEBIAN_SUITE}`],
      { cwd: work, progress },
    );
    const archive = (await readdir(work)).find((name) => name.endsWith('.deb'));
    if (!archive) throw new SetupError('apt-get download left no package file.');
    await runProgram('headers-unpack', 'dpkg-deb', ['-x', archive, 'unpacked'], { cwd: work, progress });
  } catch (error) {
    throw new SetupError(
      `${error.message}\n\nONNX Runtime's headers could not be fetched from Debian. ${ADVICE}`,
    );
  }
  await rm(fetched, { recursive: true, force: true });
  await cp(path.join(work, 'unpacked', 'usr', 'include', 'onnxruntime'), fetched, { recursive: true });
  await rm(work, { recursive: true, force: true });
  if (!existsSync(path.join(fetched, HEADER))) {
    throw new SetupError(`Debian's libonnxruntime-dev no longer holds ${HEADER} where it was. ${ADVICE}`);
  }
}

/** Where `fetchHeaders` puts them. */
export const fetchedHeader = path.join(fetched, HEADER);
