import { lstat, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { UserError } from '../../errors.ts';
import { maybeNotUtf8 } from './files.ts';
import { globFiles } from './globFiles.ts';
import type { PlanOptions } from './plan.ts';
import { type Input, resultStem, stemOf, usualResult, withoutExtension } from './results.ts';

interface Found extends Input {
  /** Whether its own name was given, instead of a folder or a glob. */
  readonly named: boolean;
}

const depth = (file: string): number => file.split('/').length;

/** The fixed beginning of a glob, whose rest results keep as folders, and that rest. */
function splitGlob(name: string): { readonly base: string; readonly pattern: string } {
  const parts = name.replace(/\/+$/, '').split('/');
  // None where a brace holds a slash.
  const firstDynamic = Math.max(
    0,
    parts.findIndex((part) => isDynamicPattern(part)),
  );
  const base = parts.slice(0, firstDynamic).join('/') || (name.startsWith('/') ? '/' : '.');
  const pattern = parts.slice(firstDynamic).join('/');
  if (pattern.split('/').includes('..'))
    throw new UserError(`".." cannot follow a pattern: "${name}". Begin with the folder that is meant.`);
  return { base, pattern: pattern.replace(/^\/+/, '') };
}

async function below(folder: string, patterns: string[]): Promise<Found[]> {
  const unread: string[] = [];
  const files = await glob(patterns, {
    cwd: folder,
    dot: false,
    caseSensitiveMatch: false,
    // A pattern matches files: a folder named like an image is none.
    expandDirectories: false,
    fs: globFiles((missed) => unread.push(path.resolve(missed))),
  });
  // Of a file that links to folders make several of, the shortest path counts.
  const found = files
    .sort()
    .sort((one, other) => depth(one) - depth(other))
    .map((file) => ({ file: path.join(folder, file), stem: withoutExtension(file), named: false }));
  // A folder that cannot be read is an input that fails.
  const failing = unread.map((missed) => {
    const file = path.join(folder, path.relative(path.resolve(folder), missed));
    return { file, stem: path.relative(folder, file), named: true };
  });
  return [...found, ...failing];
}

async function expand(name: string, extensions: readonly string[]): Promise<Found[]> {
  const found = await stat(name).catch(() => undefined);
  if (found?.isDirectory()) return below(name, [`**/*.{${extensions.join(',')}}`]);
  // A link to nothing and a name that is not valid UTF-8 are inputs that fail.
  if (found ?? (maybeNotUtf8(name) || (await lstat(name).catch(() => undefined))))
    return [{ file: name, stem: withoutExtension(path.basename(name)), named: true }];
  if (!isDynamicPattern(name)) throw new UserError(`There is no file or folder "${name}".`);
  const { base, pattern } = splitGlob(name);
  return below(base, [pattern]);
}

/** Removes results of an earlier run that a folder or a glob matches. A file whose own name was given stays. */
function withoutResults(found: readonly Found[], { out, format, overwrite }: PlanOptions): Found[] {
  const stems = new Set<string>();
  const files = new Set<string>();
  for (const input of found) {
    const result = resultStem(input, out);
    if (result !== stemOf(input)) stems.add(result);
    // Where results get the names of their inputs, another input may have that name: it is never overwritten.
    else if (!overwrite && usualResult(result, format) !== path.resolve(input.file))
      files.add(usualResult(result, format));
  }
  const isResult = (input: Found) => stems.has(stemOf(input)) || files.has(path.resolve(input.file));
  return found.filter((input) => input.named || !isResult(input));
}

/** Identifies a file: a link to a folder does not make another file of it, a link to a file does. */
function fileKeys(): (file: string) => Promise<string> {
  const folders = new Map<string, Promise<string>>();
  return async (file) => {
    const folder = path.dirname(file);
    const real = folders.get(folder) ?? realpath(folder).catch(() => path.resolve(folder));
    folders.set(folder, real);
    return path.join(await real, path.basename(file));
  };
}

/**
 * The files matched by names, folders (recursively) and globs, each once and without the results of an earlier
 * run with these options. Throws UserError for a name that matches none.
 */
export async function findInputs(
  names: readonly string[],
  extensions: readonly string[],
  options: PlanOptions,
): Promise<Input[]> {
  const inputs = new Map<string, Found>();
  const keyOf = fileKeys();
  for (const name of names) {
    const found = await expand(name, extensions);
    if (found.length === 0) throw new UserError(`No images were found in "${name}".`);
    for (const input of found) {
      const key = await keyOf(input.file);
      const earlier = inputs.get(key);
      inputs.set(key, { ...(earlier ?? input), named: input.named || earlier?.named === true });
    }
  }
  return withoutResults([...inputs.values()], options);
}
