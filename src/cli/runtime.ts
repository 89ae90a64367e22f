import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Argument, Command } from 'commander';
import { UserError } from '../errors.ts';
import { makeFolder } from '../folder.ts';
import { findRuntime, installedRequirements, requirementsFile, runtimeFolder } from '../runtime/installed.ts';

interface RuntimeCommandDependencies {
  readonly runtimesDir: string;
  readonly out: NodeJS.WritableStream;
  readonly requirements?: string;
  readonly python?: string;
}

const stagingOf = (runtimesDir: string) => path.join(runtimesDir, '.staging');

/**
 * Installs the wheels by one call of pip, whose settings (index, proxy, certificates), progress and messages are the
 * operator's own. They become the runtime when all are there. Nothing in the wheels is executed. Rejects with UserError.
 */
async function install({
  runtimesDir,
  requirements = requirementsFile,
  python = 'python3',
}: RuntimeCommandDependencies): Promise<void> {
  const staging = stagingOf(runtimesDir);
  makeFolder('folder of runtimes', runtimesDir);
  rmSync(staging, { recursive: true, force: true });
  const [target, temporary] = ['target', 'temporary'].map((name) => path.join(staging, name)) as [
    string,
    string,
  ];
  mkdirSync(temporary, { recursive: true });
  const args = [
    ...['-m', 'pip', 'install', '--no-input', '--disable-pip-version-check', '--no-compile'],
    ...['--require-hashes', '--no-deps', '--only-binary', ':all:'],
    // These wheels are not for the Python that pip runs on.
    ...['--implementation', 'cp', '--python-version', '3.12'],
    ...['28', '27', '17', '12'].flatMap((glibc) => ['--platform', `manylinux_2_${glibc}_x86_64`]),
    ...['--target', target, '--requirement', requirements],
  ];
  // pip's temporary files belong on the same disk: that of the system may be small. `env` sets where.
  const pip = spawn('env', [`TMPDIR=${temporary}`, python, ...args], { stdio: 'inherit' });
  const [status] = (await once(pip, 'close')) as [number | null];
  if (status !== 0) {
    rmSync(staging, { recursive: true, force: true });
    throw new UserError(
      status === 127
        ? `The runtime is installed by pip, and ${python} was not found. Install Python 3 with pip (Debian, Ubuntu: \`apt install python3-pip\`) and try again.`
        : `pip ended with status ${status ?? 'none'}, and nothing was installed; its message stands above. Run the command again to continue: pip keeps what it has downloaded.`,
    );
  }
  copyFileSync(requirements, installedRequirements(target));
  rmSync(runtimeFolder(runtimesDir), { recursive: true, force: true });
  renameSync(target, runtimeFolder(runtimesDir));
  rmSync(staging, { recursive: true, force: true });
}

const lines = (text: string) => text.split('\n').filter((line) => /^\w/.test(line));

/** `cutout runtime …`. Actions reject with UserError. */
export function runtimeCommand(dependencies: RuntimeCommandDependencies): Command {
  const { runtimesDir, out, requirements = requirementsFile } = dependencies;
  const command = new Command('runtime');
  const which = () => new Argument('<name>', 'runtime').choices(['cuda']);
  const wanted = () => readFileSync(requirements, 'utf8');

  command
    .command('install')
    .description('install ONNX Runtime for CUDA, CUDA and cuDNN by pip')
    .addArgument(which())
    .action(async () => {
      const platform = `${process.platform} ${process.arch}`;
      if (platform !== 'linux x64')
        throw new UserError(`The runtime cuda is for Linux on x86-64; this machine is ${platform}.`);
      out.write(
        'The runtime cuda (1.2 GB, 2.1 GB unpacked) needs a GPU of compute capability 7.5 or newer and the NVIDIA driver 580 or newer. By installing it you accept the licences of NVIDIA for CUDA and cuDNN.\n',
      );
      await install(dependencies);
      out.write('The runtime cuda is installed. CUTOUT_DEVICE=cuda uses it; `cutout doctor` checks it.\n');
    });

  command
    .command('list')
    .description('list the installed runtime and its packages')
    .action(() => {
      const found = findRuntime(runtimesDir);
      if (!found) {
        out.write(`No runtime is installed in ${runtimesDir}.\n`);
        return;
      }
      const state = found.requirements === wanted() ? '' : ', from another release: install it again';
      const packages = lines(found.requirements ?? '').map((line) => `${line.replace(/ --hash.*/, '')}\n`);
      out.write(`cuda in ${found.folder}${state}\n${packages.join('')}`);
    });

  command
    .command('remove')
    .description('delete the installed runtime')
    .addArgument(which())
    .action(() => {
      for (const folder of [runtimeFolder(runtimesDir), stagingOf(runtimesDir)])
        rmSync(folder, { recursive: true, force: true });
      out.write(`There is no runtime in ${runtimesDir} now.\n`);
    });

  return command;
}
