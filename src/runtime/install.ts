import { mkdir, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from '../folder.ts';
import { digestFile } from '../models/files.ts';
import { withLock } from '../models/lock.ts';
import { RuntimeError } from './error.ts';
import { findRuntime, RECORD, type RuntimeRecord, runtimeFolder } from './installed.ts';
import type { RuntimePackages } from './packages.ts';
import { findPip, type Pip, type PipCall, pipDownload, unpackWheel } from './pip.ts';

export interface InstallProgress {
  readonly phase: 'wait' | 'download' | 'unpack';
  readonly bytes?: number;
  readonly total?: number;
}

export interface InstallOptions {
  readonly runtimesDir: string;
  readonly packages: RuntimePackages;
  readonly onProgress: (progress: InstallProgress) => void;
  readonly python?: readonly string[];
  /** For pip. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly platform?: string;
  readonly freeBytes?: (folder: string) => Promise<number>;
}

/** Kept free beside what the runtime needs. */
const SPARE_BYTES = 200e6;
const POLL_MS = 500;

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

const freeBytesOf = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** Where complete downloads of an interrupted install stay. */
const downloadsOf = (runtimesDir: string) => path.join(runtimesDir, '.downloads');

/** Complete wheels in the folder of downloads: their files by digest. */
async function complete(runtimesDir: string): Promise<Map<string, string>> {
  const folder = downloadsOf(runtimesDir);
  const found = new Map<string, string>();
  for (const name of await readdir(folder)) {
    if (name.endsWith('.whl')) {
      const file = path.join(folder, name);
      found.set((await digestFile(file)).sha256, file);
    }
  }
  return found;
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!entry.isFile()) continue;
    // pip may have moved it meanwhile.
    bytes += await stat(path.join(entry.parentPath, entry.name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return bytes;
}

/** Fetches the wheels that are not among `files` yet, one after another, and adds them. */
async function download(
  { packages, onProgress, runtimesDir }: InstallOptions,
  files: Map<string, string>,
  pip: Pip,
  call: PipCall,
): Promise<void> {
  const folder = downloadsOf(runtimesDir);
  const total = packages.wheels.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = packages.wheels.reduce((sum, { sha256, bytes }) => sum + (files.has(sha256) ? bytes : 0), 0);
  for (const wheel of packages.wheels) {
    if (files.has(wheel.sha256)) continue;
    onProgress({ phase: 'download', bytes: done, total });
    const what = `${wheel.name} ${wheel.version}`;
    const arriving = path.join(folder, 'arriving');
    await rm(arriving, { recursive: true, force: true });
    await mkdir(arriving);
    const requirements = path.join(arriving, 'requirements.txt');
    await writeFile(requirements, `${wheel.name}==${wheel.version} --hash=sha256:${wheel.sha256}\n`);
    const timer = setInterval(async () => {
      const bytes = done + Math.min(await sizeOf(arriving), wheel.bytes);
      onProgress({ phase: 'download', bytes, total });
    }, POLL_MS);
    try {
      const { pythonVersion, platforms } = packages;
      // Also pip's temporary files belong on this disk: those of the system may be on a small one.
      const environment = { ...call.environment, TMPDIR: arriving };
      await pipDownload(
        pip,
        { what, requirements, to: arriving, pythonVersion, platforms },
        { ...call, environment },
      );
    } finally {
      clearInterval(timer);
    }
    const name = (await readdir(arriving)).find((each) => each.endsWith('.whl'));
    const file = name === undefined ? undefined : path.join(arriving, name);
    if (file === undefined || (await digestFile(file)).sha256 !== wheel.sha256) {
      throw new RuntimeError(
        'runtime_digest',
        `pip fetched another file than ${what} with the pinned digest.`,
      );
    }
    const place = path.join(folder, path.basename(file));
    await rename(file, place);
    files.set(wheel.sha256, place);
    await rm(arriving, { recursive: true, force: true });
    done += wheel.bytes;
  }
  onProgress({ phase: 'download', bytes: total, total });
}

/** Libraries, their licences and nothing else. */
const isNeeded = (file: string): boolean => /\.so(\.\d+)*$/.test(file) || /\.dist-info\//.test(file);

/** Deletes what is not needed and returns the rest. */
async function prune(folder: string): Promise<RuntimeRecord['files']> {
  const files: RuntimeRecord['files'] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(folder, file);
    // ONNX Runtime's module for Python is a library too; NVRTC comes in two versions.
    if (!isNeeded(name) || /\.cpython-[^/]*\.so$|\.alt\.so/.test(name)) await rm(file);
    else files.push({ path: name, bytes: (await stat(file)).size });
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function unpack(
  { packages, onProgress, runtimesDir }: InstallOptions,
  wheels: ReadonlyMap<string, string>,
  pip: Pip,
  call: PipCall,
): Promise<void> {
  const staging = path.join(runtimesDir, '.staging');
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging);
  const total = packages.wheels.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
  let bytes = 0;
  for (const { sha256, unpackedBytes } of packages.wheels) {
    onProgress({ phase: 'unpack', bytes, total });
    await unpackWheel(pip, wheels.get(sha256) ?? '', staging, call);
    bytes += unpackedBytes;
  }
  const files = await prune(staging);
  const libraries = packages.wheels.flatMap((wheel) => wheel.libraries);
  const missing = [packages.onnxruntime, ...libraries].find(
    (name) => !files.some((file) => file.path === name),
  );
  if (missing !== undefined) {
    throw new RuntimeError('runtime_damaged', `The wheels of this runtime have no ${missing}.`);
  }
  const record: RuntimeRecord = {
    name: packages.name,
    onnxruntime: packages.onnxruntime,
    libraries,
    wheels: packages.wheels.map(({ name, version, sha256 }) => ({ name, version, sha256 })),
    files,
  };
  await writeFile(path.join(staging, RECORD), `${JSON.stringify(record, undefined, 1)}\n`);
  await rm(runtimeFolder(runtimesDir), { recursive: true, force: true });
  await rename(staging, runtimeFolder(runtimesDir));
  onProgress({ phase: 'unpack', bytes: total, total });
}

async function checkSpace(options: InstallOptions, there: ReadonlyMap<string, string>): Promise<void> {
  const { packages, runtimesDir, freeBytes = freeBytesOf } = options;
  const needed = packages.wheels.reduce(
    (sum, { sha256, bytes, unpackedBytes }) => sum + (there.has(sha256) ? 0 : bytes) + unpackedBytes,
    SPARE_BYTES,
  );
  const free = await freeBytes(runtimesDir);
  if (free >= needed) return;
  throw new RuntimeError(
    'runtime_space',
    `The runtime needs ${gigabytes(needed)} of free space in ${runtimesDir} while it is installed, and there are ${gigabytes(free)}. Free space, or set CUTOUT_RUNTIMES_DIR to a folder on another disk.`,
  );
}

/**
 * Fetches a runtime's wheels by pip, with pinned versions and digests, and unpacks their libraries. An interrupted
 * install continues with the wheels that are complete; a runtime that is in use is replaced only when the new one is
 * complete. Returns false if this runtime was installed already. Rejects with RuntimeError, and with the reason of
 * `signal` when it is aborted.
 */
export async function installRuntime(options: InstallOptions): Promise<boolean> {
  const { runtimesDir, packages, signal, onProgress, environment } = options;
  const platform = options.platform ?? `${process.platform} ${process.arch}`;
  if (platform !== 'linux x64') {
    throw new RuntimeError(
      'runtime_platform',
      `The runtime ${packages.name} is for Linux on x86-64; this machine is ${platform}.`,
    );
  }
  makeFolder('folder of runtimes', downloadsOf(runtimesDir));
  const work = async (): Promise<boolean> => {
    const there = await findRuntime(runtimesDir).catch((error: unknown) => {
      if (error instanceof RuntimeError) return undefined;
      throw error;
    });
    if (there?.current) return false;
    const call: PipCall = {
      python: options.python ?? ['python3', 'python'],
      environment: environment ?? {},
      signal,
    };
    const pip = await findPip(call);
    const wheels = await complete(runtimesDir);
    await checkSpace(options, wheels);
    await download(options, wheels, pip, call);
    await unpack(options, wheels, pip, call);
    await rm(downloadsOf(runtimesDir), { recursive: true, force: true });
    return true;
  };
  return withLock(path.join(runtimesDir, '.lock'), work, {
    signal,
    onWait: () => onProgress({ phase: 'wait' }),
  });
}

/** Deletes an installed runtime and what an interrupted install left. Returns the bytes; 0 if there was nothing. */
export async function removeRuntime(runtimesDir: string): Promise<number> {
  const places = [runtimeFolder(runtimesDir), downloadsOf(runtimesDir), path.join(runtimesDir, '.staging')];
  let bytes = 0;
  for (const place of places) {
    bytes += await sizeOf(place);
    await rm(place, { recursive: true, force: true });
  }
  return bytes;
}
