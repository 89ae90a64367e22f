import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import sharp from 'sharp';
import { root } from './paths.ts';

function system(): string {
  try {
    const text = readFileSync('/etc/os-release', 'utf8');
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(text)?.[1] ?? process.platform;
  } catch {
    return process.platform;
  }
}

/** The measuring machine. `busy`: load average of the last minute before the bench. */
export const machine = (): Readonly<Record<string, string | number>> => ({
  processor: cpus()[0]?.model.trim() ?? process.arch,
  cores: availableParallelism(),
  'memory GB': Math.round(totalmem() / 2 ** 30),
  system: `${system()}, Linux ${release().split('-')[0] ?? ''}, ${process.arch}`,
  busy: Number((loadavg()[0] ?? 0).toFixed(2)),
});

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    return (
      git('rev-parse', '--short=9', 'HEAD') + (git('status', '--porcelain') === '' ? '' : ' and changes')
    );
  } catch {
    return 'unknown';
  }
}

const versionOf = (packageJson: string): string =>
  (createRequire(import.meta.url)(packageJson) as { version: string }).version;

/** Of the checkout that measures; a server at a given address may have another. */
export const versions = (): Readonly<Record<string, string>> => ({
  cutout: versionOf(`${root}/package.json`),
  commit: commit(),
  node: process.versions.node,
  onnxruntime: versionOf('onnxruntime-node/package.json'),
  libvips: sharp.versions.vips,
});
