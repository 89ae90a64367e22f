import { Argument, Command } from 'commander';
import { RuntimeError } from '../runtime/error.ts';
import { installRuntime, removeRuntime } from '../runtime/install.ts';
import { findRuntime } from '../runtime/installed.ts';
import { cudaRuntime, type RuntimePackages } from '../runtime/packages.ts';
import { type Output, progressOn } from './modelsProgress.ts';
import { table } from './table.ts';

interface RuntimeCommandDependencies {
  readonly runtimesDir: string;
  readonly out: Output;
  readonly packages?: RuntimePackages;
  readonly python?: readonly string[];
  /** For pip. */
  readonly environment?: Readonly<Record<string, string>>;
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

/** TensorRT's wheels are not in the public registry, and what stands there under its name fetches them from elsewhere. */
const noTensorrt = () =>
  new RuntimeError(
    'runtime_unavailable',
    'TensorRT has no wheel in the registry of Python packages, so Cutout does not install it. Run `cutout runtime install cuda`, and install TensorRT 10 for CUDA 13 (libnvinfer.so.10 and libnvonnxparser.so.10) from the packages of NVIDIA, where the loader finds it; docs/gpu.md says how.',
  );

/** `cutout runtime …`. Actions reject with RuntimeError, whose message is for the operator. */
export function runtimeCommand(dependencies: RuntimeCommandDependencies): Command {
  const { runtimesDir, out, packages = cudaRuntime, python, environment } = dependencies;
  const command = new Command('runtime');
  const which = () => new Argument('<name>', 'runtime').choices(['cuda', 'tensorrt']);

  command
    .command('install')
    .description('fetch ONNX Runtime for CUDA, CUDA and cuDNN by pip; continues an interrupted install')
    .addArgument(which())
    .action(async (name: string) => {
      if (name === 'tensorrt') throw noTensorrt();
      const observer = progressOn(out, `runtime ${name}`, {
        wait: 'waiting for another process that installs it',
      });
      const stop = new AbortController();
      const abort = () =>
        stop.abort(new RuntimeError('runtime_pip', 'The install was stopped; run it again to continue.'));
      process.once('SIGINT', abort).once('SIGTERM', abort);
      try {
        const total = packages.wheels.reduce((sum, { bytes }) => sum + bytes, 0);
        observer.notice(
          `Runtime ${name} (${gigabytes(total)}) needs ${packages.needs}. By installing it you accept the licences of NVIDIA for CUDA and cuDNN.`,
        );
        const installed = await installRuntime({
          runtimesDir,
          packages,
          onProgress: (progress) => observer.progress(progress),
          signal: stop.signal,
          ...(python && { python }),
          ...(environment && { environment }),
        });
        observer.done();
        out.write(
          installed
            ? `The runtime ${name} is installed. CUTOUT_DEVICE=cuda uses it; \`cutout doctor\` checks it.\n`
            : `The runtime ${name} is installed already.\n`,
        );
      } finally {
        process.off('SIGINT', abort).off('SIGTERM', abort);
        observer.done();
      }
    });

  command
    .command('list')
    .description('list installed runtimes and their libraries')
    .action(async () => {
      const found = await findRuntime(runtimesDir);
      if (!found) {
        out.write(`No runtime is installed in ${runtimesDir}.\n`);
        return;
      }
      const state = found.current ? '' : ', from another release: install it again';
      out.write(`cuda in ${found.folder}, ${gigabytes(found.bytes)}${state}\n\n`);
      out.write(
        table([['PACKAGE', 'VERSION'], ...found.record.wheels.map(({ name, version }) => [name, version])]),
      );
    });

  command
    .command('remove')
    .description('delete an installed runtime, and what an interrupted install left')
    .addArgument(which())
    .action(async (name: string) => {
      const bytes = name === 'cuda' ? await removeRuntime(runtimesDir) : 0;
      out.write(
        bytes > 0
          ? `The runtime ${name} was removed: ${gigabytes(bytes)} are free.\n`
          : `The runtime ${name} was not in ${runtimesDir}.\n`,
      );
    });

  return command;
}
