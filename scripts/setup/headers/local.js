import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { SetupError } from '../step.js';

const C_HEADER = 'onnxruntime_c_api.h';
const CXX_HEADER = 'onnxruntime_cxx_api.h';
/** API version of ONNX Runtime 1.23, the oldest whose headers have what native/ort uses of providers as plugins. */
const OLDEST = 23;

/** API version of the headers in a folder: the minor number of their release; undefined without headers. */
function apiVersion(folder) {
  if (!existsSync(path.join(folder, CXX_HEADER))) return undefined;
  try {
    const text = readFileSync(path.join(folder, C_HEADER), 'utf8');
    const version = /^#define ORT_API_VERSION (\d+)/m.exec(text)?.[1];
    return version === undefined ? undefined : Number(version);
  } catch {
    return undefined;
  }
}

/** Whether the addon can be built with the headers in a folder. `newest`: the API version of the library, which refuses newer ones. */
export function usable(folder, newest) {
  const version = apiVersion(folder);
  return version !== undefined && version >= OLDEST && version <= newest;
}

/** System folders that may contain the headers, best first. */
function systemFolders() {
  const folders = [];
  try {
    const flags = execFileSync('pkg-config', ['--cflags-only-I', 'libonnxruntime'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for (const flag of flags.trim().split(/\s+/)) if (flag !== '') folders.push(flag.slice(2));
  } catch {
    // No pkg-config or no such package: the fixed folders remain.
  }
  return [...folders, '/usr/include/onnxruntime', '/usr/local/include/onnxruntime'];
}

/**
 * The folder of ONNXRUNTIME_INCLUDE_DIR, else one of the system; undefined without any. System headers that
 * are too old, or newer than the library in package.json, are skipped; a configured folder is not.
 */
export function localHeaders(
  newest,
  { named = process.env.ONNXRUNTIME_INCLUDE_DIR, folders = systemFolders } = {},
) {
  if (!named) return folders().find((folder) => usable(folder, newest));
  const version = apiVersion(named);
  if (version === undefined)
    throw new SetupError(
      `ONNXRUNTIME_INCLUDE_DIR is '${named}', but ${C_HEADER} and ${CXX_HEADER} are not in that folder.`,
    );
  if (!usable(named, newest))
    throw new SetupError(
      `The headers in ONNXRUNTIME_INCLUDE_DIR ('${named}') are those of ONNX Runtime 1.${version}; 1.${OLDEST} to 1.${newest} are allowed.`,
    );
  return named;
}
