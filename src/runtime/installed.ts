import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.ts';

/** What `cutout runtime install cuda` installs: versions and digests of the wheels, as pip reads them. */
export const requirementsFile = fileURLToPath(new URL('../../../../scripts/setup/cuda.txt', import.meta.url));

const onnxruntime = 'onnxruntime/capi/libonnxruntime.so.1.30.0';

/**
 * The libraries that ONNX Runtime's provider needs, in the order in which the engine opens them. cuDNN loads its other
 * parts from its own folder; NVRTC finds its builtins only where they are open already.
 */
const libraries = [
  'nvidia/cu13/lib/libcudart.so.13',
  'nvidia/cu13/lib/libnvrtc-builtins.so.13.0',
  'nvidia/cu13/lib/libnvrtc.so.13',
  'nvidia/cu13/lib/libcublasLt.so.13',
  'nvidia/cu13/lib/libcublas.so.13',
  'nvidia/cu13/lib/libcurand.so.10',
  'nvidia/cudnn/lib/libcudnn.so.9',
];

interface InstalledRuntime {
  readonly folder: string;
  /** The requirements that it was installed from; undefined if an older release of Cutout installed it. */
  readonly requirements: string | undefined;
  /** Paths for EngineOptions. */
  readonly runtimePath: string;
  readonly libraries: readonly string[];
}

export const runtimeFolder = (runtimesDir: string): string => path.join(runtimesDir, 'cuda');

/** The copy of the requirements file that stands in an installed runtime. */
export const installedRequirements = (folder: string): string => path.join(folder, 'requirements.txt');

/**
 * The runtime that `cutout runtime install cuda` made; undefined if there is none. Throws UserError if one of its
 * libraries is missing; their contents are not checked.
 */
export function findRuntime(runtimesDir: string): InstalledRuntime | undefined {
  const folder = runtimeFolder(runtimesDir);
  if (!existsSync(folder)) return undefined;
  const inFolder = (file: string) => path.join(folder, file);
  const missing = [onnxruntime, ...libraries].find((file) => !existsSync(inFolder(file)));
  if (missing !== undefined)
    throw new UserError(
      `The runtime in ${folder} is damaged: ${missing} is missing. Run \`cutout runtime install cuda\` to install it again.`,
    );
  const file = installedRequirements(folder);
  return {
    folder,
    requirements: existsSync(file) ? readFileSync(file, 'utf8') : undefined,
    runtimePath: inFolder(onnxruntime),
    libraries: libraries.map(inFolder),
  };
}
