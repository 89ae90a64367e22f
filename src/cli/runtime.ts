import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Argument, Command } from 'commander';
import { UserError } from '../errors.ts';
import { makeFolder } from '../folder.ts';
import {
  findRuntime,
  type RuntimeName,
  requirementsFile,
  runtimeFolder,
  runtimes,
} from '../runtime/installed.ts';

interface RuntimeCommandDependencies {
  readonly runtimesDir: string;
  readonly out: NodeJS.WritableStream;
  readonly requirements?: string;
  readonly python?: string;
}

/**
 * Installs the wheels by one call of pip, with the operator's settings (index, proxy, certificates). They become the
 * runtime when all are there; nothing in them is executed. Resolves with its folder; rejects with UserError.
 */
async function install(
  name: RuntimeName,
  { runtimesDir, requirements = requirementsFile(name), python = 'python3' }: RuntimeCommandDependencies,
): Promise<string> {
  const folder = runtimeFolder(runtimesDir, name);
  const staging = path.join(runtimesDir, '.staging');
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
  rmSync(folder, { recursive: true, force: true });
  renameSync(target, folder);
  rmSync(staging, { recursive: true, force: true });
  return folder;
}

/** `cutout runtime install | list | remove`. Rejects with UserError. */
export function runtimeCommand(dependencies: RuntimeCommandDependencies): Command {
  const { out, runtimesDir } = dependencies;
  const names = Object.keys(runtimes) as RuntimeName[];
  const name = new Argument('<name>', 'runtime').choices(names);
  const isThere = (each: RuntimeName) => existsSync(runtimeFolder(runtimesDir, each));
  /** Returns where a runtime is, or what is wrong with it. */
  const stateOf = (each: RuntimeName): string => {
    try {
      return findRuntime(runtimesDir, each) ? runtimeFolder(runtimesDir, each) : 'not installed';
    } catch (error) {
      if (error instanceof UserError) return error.message;
      throw error;
    }
  };
  const command = new Command('runtime').description('install what GPUs need, by pip');
  command
    .command('install')
    .description('install what CUTOUT_DEVICE=tensorrt or cuda needs')
    .addArgument(name)
    .action(async (name: RuntimeName) => {
      const platform = `${process.platform} ${process.arch}`;
      if (platform !== 'linux x64')
        throw new UserError(`The runtime ${name} is for Linux on x86-64; this machine is ${platform}.`);
      out.write(`${runtimes[name].about}\n`);
      const folder = await install(name, dependencies);
      out.write(`The runtime is in ${folder}. CUTOUT_DEVICE=${name} uses it; \`cutout doctor\` checks it.\n`);
    });
  command
    .command('list')
    .description('list the runtimes and whether they are installed')
    .action(() => {
      for (const each of names) out.write(`${each}: ${stateOf(each)}\n`);
    });
  command
    .command('remove')
    .description('delete an installed runtime')
    .addArgument(name)
    .action((name: RuntimeName) => {
      if (!isThere(name)) throw new UserError(`The runtime ${name} is not installed in ${runtimesDir}.`);
      rmSync(runtimeFolder(runtimesDir, name), { recursive: true });
      out.write(`The runtime ${name} was removed.\n`);
    });
  return command;
}
