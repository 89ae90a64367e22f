import { spawn } from 'node:child_process';
import { RuntimeError } from './error.ts';

export interface PipCall {
  /** Names of the interpreter to try, in this order. */
  readonly python: readonly string[];
  /** Changes of the environment. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

interface Ended {
  readonly code: number | null;
  /** The end of standard output and standard error. */
  readonly output: string;
}

/** What `env` ends with if it cannot start the program. */
const NOT_STARTED = [126, 127];

/**
 * Runs a program to its end, in this process's environment with changes. Rejects with the signal's reason when it is
 * aborted.
 */
function run(
  program: string,
  args: readonly string[],
  { environment = {}, signal }: PipCall,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const changes = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const child = spawn('env', [...changes, program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(signal && { signal }),
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-20_000);
      });
    }
    child.on('error', (error) => reject(signal?.aborted ? signal.reason : error));
    child.on('close', (code) => resolve({ code, output }));
  });
}

const INSTALL_PIP =
  'Install Python 3 with pip (Debian, Ubuntu: `apt install python3-pip`; Fedora: `dnf install python3-pip`) and try again.';

export interface Pip {
  readonly python: string;
  readonly version: string;
}

/** The first interpreter that has pip. Rejects with RuntimeError `runtime_pip`. */
export async function findPip(call: PipCall): Promise<Pip> {
  let without: string | undefined;
  for (const python of call.python) {
    const ended = await run(python, ['-m', 'pip', '--version'], call);
    const version = /^pip (\d+(?:\.\d+)+)/m.exec(ended.output)?.[1];
    if (ended.code === 0 && version !== undefined) return { python, version };
    if (ended.code === null || !NOT_STARTED.includes(ended.code)) without ??= python;
  }
  const found = without === undefined ? 'Python 3 was not found' : `${without} has no pip`;
  throw new RuntimeError('runtime_pip', `The runtime is fetched by pip, and ${found}. ${INSTALL_PIP}`);
}

/** The options that pip has from a version on: it then continues interrupted downloads by itself. */
const resumes = (version: string): readonly string[] => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 25 || (major === 25 && minor >= 1) ? ['--resume-retries', '5'] : [];
};

/** What pip's output says, as an error for the operator. */
export function pipFailure(what: string, output: string): RuntimeError {
  const failed = `pip could not fetch ${what}`;
  const lines = output.split('\n').map((line) => line.trim());
  const said = lines.findLast((line) => line.startsWith('ERROR:')) ?? lines.findLast(Boolean) ?? 'no message';
  const reason = said.replace(/^ERROR:\s*/, '');
  if (/DO NOT MATCH THE HASHES|Hash mismatch|HashMismatch/i.test(output)) {
    return new RuntimeError(
      'runtime_digest',
      `${failed}: the registry's file has another digest than the one this release pins, and is not used. Check the index and the proxy that pip is configured with.`,
    );
  }
  if (/No space left on device|Errno 28/i.test(output)) {
    return new RuntimeError(
      'runtime_space',
      `${failed}: the disk is full. Free space, or set CUTOUT_RUNTIMES_DIR to a folder on another disk, and run the command again: complete files are kept.`,
    );
  }
  const unreachable =
    /NewConnectionError|NameResolutionError|Temporary failure in name resolution|Connection (?:refused|aborted|reset)|ConnectionError|ConnectTimeout|Read ?timed out|ReadTimeout|ProxyError|SSLError|IncompleteRead|ChunkedEncodingError|Max retries exceeded/i;
  if (unreachable.test(output)) {
    return new RuntimeError(
      'runtime_network',
      `${failed}: the registry cannot be reached. Check the network, or pip's index and proxy (\`pip config list\`), and run the command again: complete files are kept. [${reason}]`,
    );
  }
  if (/No matching distribution found|Could not find a version/i.test(output)) {
    return new RuntimeError(
      'runtime_network',
      `${failed}: the registry that pip is configured with does not have it. Check pip's index (\`pip config list\`). [${reason}]`,
    );
  }
  return new RuntimeError('runtime_pip', `${failed}: ${reason}`);
}

/** `pip download` of what a requirements file pins, into a folder. Rejects with RuntimeError. */
export async function pipDownload(
  pip: Pip,
  {
    what,
    requirements,
    to,
    pythonVersion,
    platforms,
  }: {
    readonly what: string;
    readonly requirements: string;
    readonly to: string;
    readonly pythonVersion: string;
    readonly platforms: readonly string[];
  },
  call: PipCall,
): Promise<void> {
  const args = [
    ...['-m', 'pip', 'download', '--no-input', '--disable-pip-version-check', '--progress-bar', 'off'],
    ...['--no-cache-dir', '--no-deps', '--require-hashes', '--only-binary', ':all:'],
    ...['--implementation', 'cp', '--python-version', pythonVersion],
    ...platforms.flatMap((platform) => ['--platform', platform]),
    ...resumes(pip.version),
    ...['--dest', to, '--requirement', requirements],
  ];
  const { code, output } = await run(pip.python, args, call);
  call.signal?.throwIfAborted();
  if (code !== 0) throw pipFailure(what, output);
}

/** Unpacks a wheel, which is a ZIP file, with the interpreter that pip runs on. Nothing in it is executed. */
export async function unpackWheel(pip: Pip, wheel: string, to: string, call: PipCall): Promise<void> {
  const { code, output } = await run(pip.python, ['-m', 'zipfile', '-e', wheel, to], call);
  call.signal?.throwIfAborted();
  if (code === 0) return;
  if (/No space left on device/.test(output)) {
    throw new RuntimeError(
      'runtime_space',
      `${wheel} could not be unpacked: the disk is full. Free space and try again.`,
    );
  }
  throw new RuntimeError(
    'runtime_damaged',
    `${wheel} could not be unpacked: ${output.trim().split('\n').at(-1)}`,
  );
}
