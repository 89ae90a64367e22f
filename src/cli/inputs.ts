import { stat } from 'node:fs/promises';
import path from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { UserError } from '../errors.ts';

export interface Input {
  readonly file: string;
  /** Path of the result below the output folder, relative to the given folder, without extension. */
  readonly stem: string;
}

const withoutExtension = (file: string) =>
  path.join(path.dirname(file), path.basename(file, path.extname(file)));

/** Fixed beginning of a glob: results keep the folders after it. */
function baseOf(pattern: string): string {
  const parts = pattern.split('/');
  const firstDynamic = parts.findIndex((part) => isDynamicPattern(part));
  return parts.slice(0, firstDynamic).join('/') || (pattern.startsWith('/') ? '/' : '.');
}

async function below(folder: string, patterns: string[]): Promise<Input[]> {
  const files = await glob(patterns, { cwd: folder, dot: false, caseSensitiveMatch: false });
  return files.sort().map((file) => ({ file: path.join(folder, file), stem: withoutExtension(file) }));
}

async function expand(name: string, extensions: readonly string[]): Promise<Input[]> {
  const found = await stat(name).catch(() => undefined);
  if (found?.isDirectory()) return below(name, [`**/*.{${extensions.join(',')}}`]);
  if (found) return [{ file: name, stem: withoutExtension(path.basename(name)) }];
  if (!isDynamicPattern(name)) throw new UserError(`There is no file or folder "${name}".`);
  const base = baseOf(name);
  return below(base, [path.relative(base, name)]);
}

/**
 * The files matched by names, folders (recursively) and globs, each once. Throws UserError for a name that
 * matches none.
 */
export async function findInputs(names: readonly string[], extensions: readonly string[]): Promise<Input[]> {
  const inputs = new Map<string, Input>();
  for (const name of names) {
    const found = await expand(name, extensions);
    if (found.length === 0) throw new UserError(`No images were found in "${name}".`);
    for (const input of found) {
      const key = path.resolve(input.file);
      if (!inputs.has(key)) inputs.set(key, input);
    }
  }
  return [...inputs.values()];
}
