import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

export interface TextFile {
  /** From the repository's root, with forward slashes. */
  readonly name: string;
  readonly text: string;
}

export const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

/** Files and folders; a path that ends in a slash must be a folder. */
export function exists(name: string): boolean {
  const file = path.join(root, name);
  return existsSync(file) && (!name.endsWith('/') || statSync(file).isDirectory());
}

/** Names of a folder's own entries; empty if it does not exist. */
export const entries = (folder: string): readonly string[] =>
  existsSync(path.join(root, folder)) ? readdirSync(path.join(root, folder)).sort() : [];

const skipped: ReadonlySet<string> = new Set(['node_modules', 'build', 'dist']);

/** All files below `folder` whose name `matches`. */
function filesBelow(folder: string, matches: RegExp): TextFile[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : filesBelow(name, matches);
    return entry.isFile() && matches.test(entry.name) ? [{ name, text: read(name) }] : [];
  });
}

const code = /\.(ts|tsx|js|cc|cu|cuh|h|proto|sh|css)$|^Dockerfile/;
const markdown = /\.md$/;

/** Native code of the engine. */
export const kernels = (): TextFile[] => filesBelow('native', /\.(cc|h)$/);

/** Everything written by hand, code and documents separately. */
export const sources = (): TextFile[] =>
  ['src', 'native', 'binding', 'web', 'test', 'bench', 'models', 'scripts', 'tools', 'deploy']
    .filter(exists)
    .flatMap((folder) => filesBelow(folder, code));

export const documents = (): TextFile[] => [
  ...entries('.')
    .filter((name) => markdown.test(name))
    .map((name) => ({ name, text: read(name) })),
  ...['docs', 'bench', 'models', 'tools', 'deploy']
    .filter(exists)
    .flatMap((folder) => filesBelow(folder, markdown)),
];

/** One section `## NNNN Title` of a file below docs/decisions. */
export interface Decision {
  /** The file, from the repository's root. */
  readonly name: string;
  readonly number: string;
  /** Under the heading, without empty ones. */
  readonly lines: readonly string[];
}

export const decisions = (): Decision[] =>
  entries('docs/decisions')
    .map((file) => `docs/decisions/${file}`)
    .flatMap((name) =>
      read(name)
        .split(/^## (?=\d{4} \S)/m)
        .slice(1)
        .map((section) => ({
          name,
          number: section.slice(0, 4),
          lines: section
            .split('\n')
            .slice(1)
            .filter((line) => line.trim() !== ''),
        })),
    );

/** `src/{a,b}.ts` as two paths. */
export function expanded(text: string): string[] {
  const [whole, inner = ''] = /\{([^}]*)\}/.exec(text) ?? [];
  return whole === undefined ? [text] : inner.split(',').flatMap((one) => expanded(text.replace(whole, one)));
}
