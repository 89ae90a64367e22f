import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError } from '../errors.ts';

/** What `cutout runtime install` installs. */
interface Runtime {
  /** What is said before it is downloaded. */
  readonly about: string;
  /** ONNX Runtime itself; without, that of the npm package takes the plugin. */
  readonly onnxruntime?: string;
  /** The provider's library, which ONNX Runtime takes at run time. */
  readonly plugin?: string;
  /**
   * The libraries that the provider needs, in the order in which the engine opens them. cuDNN loads its other parts from
   * its own folder; NVRTC finds its builtins only where they are open already.
   */
  readonly libraries: readonly string[];
}

const rtx = 'onnxruntime_ep_nv_tensorrt_rtx';

/** The runtimes, by the value of CUTOUT_DEVICE that uses each. */
export const runtimes = {
  tensorrt: {
    about:
      "The runtime tensorrt (146 MB, 301 MB unpacked) needs a GPU of compute capability 8.6, 8.9, or 12.0 and newer, and the NVIDIA driver 580 or newer. Its provider is under Apache-2.0; by installing it you accept NVIDIA's licence for TensorRT for RTX and CUDA.",
    plugin: `${rtx}/libonnxruntime_providers_nv_tensorrt_rtx.so`,
    libraries: [
      `${rtx}/libcudart.so.13.4.36`,
      `${rtx}/libtensorrt_rtx.so.1.7.1`,
      `${rtx}/libtensorrt_onnxparser_rtx.so.1.7.1`,
    ],
  },
  cuda: {
    about:
      'The runtime cuda (1.2 GB, 1.7 GB unpacked) needs a GPU of compute capability 7.5 or newer and the NVIDIA driver 580 or newer. By installing it you accept the licences of NVIDIA for CUDA and cuDNN.',
    onnxruntime: 'onnxruntime/capi/libonnxruntime.so.1.30.0',
    libraries: [
      'nvidia/cu13/lib/libcudart.so.13',
      'nvidia/cu13/lib/libnvrtc-builtins.so.13.0',
      'nvidia/cu13/lib/libnvrtc.so.13',
      'nvidia/cu13/lib/libcublasLt.so.13',
      'nvidia/cu13/lib/libcublas.so.13',
      'nvidia/cu13/lib/libcurand.so.10',
      'nvidia/cudnn/lib/libcudnn.so.9',
    ],
  },
} as const satisfies Record<string, Runtime>;

export type RuntimeName = keyof typeof runtimes;

/** Versions and digests of its wheels, as pip reads them. */
export const requirementsFile = (name: RuntimeName): string =>
  fileURLToPath(new URL(`../../../../scripts/setup/${name}.txt`, import.meta.url));

export const runtimeFolder = (runtimesDir: string, name: RuntimeName): string => path.join(runtimesDir, name);

/**
 * The paths of the runtime that `cutout runtime install` made, for EngineOptions; undefined if there is none. Throws UserError if one of its
 * libraries is missing; their contents are not checked.
 */
export function findRuntime(runtimesDir: string, name: RuntimeName) {
  const folder = runtimeFolder(runtimesDir, name);
  if (!existsSync(folder)) return undefined;
  const { onnxruntime, plugin, libraries }: Runtime = runtimes[name];
  const inFolder = (file: string) => path.join(folder, file);
  const missing = [onnxruntime, plugin, ...libraries].find(
    (file) => file !== undefined && !existsSync(inFolder(file)),
  );
  if (missing !== undefined)
    throw new UserError(
      `The runtime in ${folder} is damaged: ${missing} is missing. Run \`cutout runtime install ${name}\` to install it again.`,
    );
  return {
    ...(onnxruntime !== undefined && { runtimePath: inFolder(onnxruntime) }),
    ...(plugin !== undefined && { plugin: inFolder(plugin) }),
    libraries: libraries.map(inFolder),
  };
}

/** Whether TensorRT for RTX has code for GPUs of these compute capabilities. */
export const takesRtx = (capabilities: readonly string[]): boolean =>
  capabilities.every((each) => ['8.6', '8.9'].includes(each) || Number(each) >= 12);
