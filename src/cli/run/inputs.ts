import { stat } from 'node:fs/promises';
import path from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { UserError } from '../../errors.ts';
import { type Input, resultStem } from './results.ts';

/** An input and how it was found. */
interface Found extends Input {
  /** Whether its own name was given, instead of a folder or a glob. */
  readonly named: boolean;
}

const withoutExtension = (file: string): string =>
  path.join(path.dirname(file), path.basename(file, path.extname(file)));

/** Fixed beginning of a glob: results keep the folders after it. */
function baseOf(pattern: string): string {
  const parts = pattern.split('/');
  const firstDynamic = parts.findIndex((part) => isDynamicPattern(part));
  return parts.slice(0, firstDynamic).join('/') || (pattern.startsWith('/') ? '/' : '.');
}

async function below(folder: string, patterns: string[]): Promise<Found[]> {
  const files = await glob(patterns, { cwd: folder, dot: false, caseSensitiveMatch: false });
  return files
    .sort()
    .map((file) => ({ file: path.join(folder, file), stem: withoutExtension(file), named: false }));
}

async function expand(name: string, extensions: readonly string[]): Promise<Found[]> {
  const found = await stat(name).catch(() => undefined);
  if (found?.isDirectory()) return below(name, [`**/*.{${extensions.join(',')}}`]);
  if (found) return [{ file: name, stem: withoutExtension(path.basename(name)), named: true }];
  if (!isDynamicPattern(name)) throw new UserError(`There is no file or folder "${name}".`);
  const base = baseOf(name);
  return below(base, [path.relative(base, name)]);
}

/** Removes results of an earlier run that a folder or a glob matches. A file whose own name was given stays. */
function withoutResults(found: readonly Found[], out: string | undefined): Found[] {
  const stemOf = ({ file }: Found) => path.resolve(withoutExtension(file));
  // Where results get the names of their inputs, an input cannot be told from a result.
  const results = new Set(
    found
      .map((input) => [stemOf(input), resultStem(input, out)] as const)
      .filter(([own, result]) => own !== result)
      .map(([, result]) => result),
  );
  return found.filter((input) => input.named || !results.has(stemOf(input)));
}

/**
 * The files matched by names, folders (recursively) and globs, each once and without the results of an earlier
 * run with this output folder. Throws UserError for a name that matches none.
 */
export async function findInputs(
  names: readonly string[],
  extensions: readonly string[],
  out: string | undefined,
): Promise<Input[]> {
  const inputs = new Map<string, Found>();
  for (const name of names) {
    const found = await expand(name, extensions);
    if (found.length === 0) throw new UserError(`No images were found in "${name}".`);
    for (const input of found) {
      const key = path.resolve(input.file);
      const earlier = inputs.get(key);
      inputs.set(key, { ...(earlier ?? input), named: input.named || earlier?.named === true });
    }
  }
  return withoutResults([...inputs.values()], out);
}
