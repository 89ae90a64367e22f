import path from 'node:path';
import type { TextFile } from './documents.ts';

/** A reference from one file to another: an import, a re-export, a type import or an `#include "..."`. */
export interface Arrow {
  readonly from: string;
  /** Counted from 1. */
  readonly line: number;
  /** As written. */
  readonly specifier: string;
  /** From the repository's root; undefined if no such file exists. */
  readonly to: string | undefined;
}

/** One row of the table: a folder (its name ends in a slash) or a file, and what its files may import. */
export interface Layer {
  readonly name: string;
  /** Folders or files; undefined: everything in the rows below. */
  readonly allowed: readonly string[] | undefined;
}

const isCpp = (file: string): boolean => /\.(cc|cu|cuh|h)$/.test(file);
const isScript = (file: string): boolean => /\.(ts|tsx|js)$/.test(file);

// Statements begin their line, as the formatter ensures; `import()`, of a value or a type, may be anywhere.
const statement = /^(?:import|export)\b[^'"();]*?['"]([^'"\n]+)['"]/gm;
const expression = /\bimport\(\s*(?:new URL\(\s*)?['"]([^'"\n]+)['"]/g;
const include = /^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"/gm;

/** Include directories of CMakeLists.txt, besides the file's own folder. */
const includeRoots = ['', 'native', 'test'];

/** Files that a specifier may mean; the first existing one counts. None for packages and Node.js modules. */
function candidates(from: string, specifier: string): readonly string[] {
  const beside = path.posix.join(path.posix.dirname(from), specifier);
  if (isCpp(from)) return [beside, ...includeRoots.map((root) => path.posix.join(root, specifier))];
  if (!specifier.startsWith('.')) return [];
  // Compiled files count as their sources.
  const source = beside.replace(/^build\/ts\//, '');
  return [source, ...['.ts', '.tsx'].map((ending) => source.replace(/\.js$/, ending))];
}

/** All references between these files, in the order of files and lines. */
export function arrowsOf(files: readonly TextFile[]): Arrow[] {
  const known = new Set(files.map(({ name }) => name));
  return files.flatMap(({ name: from, text }) => {
    const patterns = isCpp(from) ? [include] : isScript(from) ? [statement, expression] : [];
    return patterns
      .flatMap((pattern) => [...text.matchAll(pattern)])
      .map((match) => ({ specifier: match[1] ?? '', line: text.slice(0, match.index).split('\n').length }))
      .sort((one, other) => one.line - other.line)
      .map(({ specifier, line }) => ({ specifier, line, names: candidates(from, specifier) }))
      .filter(({ names }) => names.some((name) => isCpp(name) || isScript(name)))
      .map(({ specifier, line, names }) => ({
        from,
        line,
        specifier,
        to: names.find((name) => known.has(name)),
      }));
  });
}

/** Rows `| folder | holds | may import |` after the heading "Folders", top layer first. */
export function layersOf(document: string): Layer[] {
  const [, rest = ''] = document.split(/^## Folders$/m);
  const [section = ''] = rest.split(/^## /m);
  return [...section.matchAll(/^\| `([^`]+)` \|.*\| ([^|]*) \|$/gm)].map(([, name = '', cell = '']) => ({
    name,
    allowed:
      cell === 'everything below' ? undefined : [...cell.matchAll(/`([^`]+)`/g)].map(([, one = '']) => one),
  }));
}

const holds = (name: string, file: string): boolean =>
  name.endsWith('/') ? file.startsWith(name) : file === name;

/** The row of a file: the most specific one. */
const layerOf = (layers: readonly Layer[], file: string): Layer | undefined =>
  layers.filter(({ name }) => holds(name, file)).sort((one, other) => other.name.length - one.name.length)[0];

/** Faults of the table itself: rows without files, duplicate rows, imports upwards. */
function tableFaults(layers: readonly Layer[], files: readonly TextFile[]): string[] {
  return layers.flatMap(({ name, allowed = [] }, at) => [
    ...(files.some((file) => holds(name, file.name))
      ? []
      : [`the table has a row for ${name}, which holds no code`]),
    ...(layers.findIndex((one) => one.name === name) < at ? [`the table has two rows for ${name}`] : []),
    ...allowed
      .filter((one) => !layers.slice(at + 1).some((below) => one.startsWith(below.name)))
      .map((one) => `the table lets ${name} import ${one}, which is in no row below it`),
  ]);
}

/** Files without a row, imports that their row does not allow, and permissions that are not needed. */
function arrowFaults(
  layers: readonly Layer[],
  files: readonly TextFile[],
  arrows: readonly Arrow[],
): string[] {
  const used = new Set<string>();
  const homeless = files
    .filter(({ name }) => !layerOf(layers, name))
    .map(({ name }) => `${name} is in no row of the table`);
  const forbidden = arrows.flatMap(({ from, line, specifier, to }) => {
    if (to === undefined) return [`${from}:${line} imports ${specifier}, which does not exist`];
    const [own, other] = [layerOf(layers, from), layerOf(layers, to)];
    if (!own || !other || own === other) return [];
    const below = layers.indexOf(other) > layers.indexOf(own);
    const allowed = own.allowed?.find((name) => holds(name, to));
    if (allowed !== undefined) used.add(`${own.name} ${allowed}`);
    if (own.allowed === undefined ? below : allowed !== undefined) return [];
    const most = own.allowed ? own.allowed.join(', ') || 'nothing' : 'rows below it';
    return [`${from}:${line} imports ${to}: ${own.name} may import ${most}`];
  });
  const needless = layers.flatMap(({ name, allowed = [] }) =>
    allowed
      .filter((one) => !used.has(`${name} ${one}`))
      .map((one) => `the table lets ${name} import ${one}, which it does not`),
  );
  return [...homeless, ...forbidden, ...needless];
}

/** The shortest path from a file back to itself, each import cycle once. */
function circles(arrows: readonly Arrow[]): string[] {
  const next = new Map<string, string[]>();
  for (const { from, to } of arrows) if (to !== undefined) next.set(from, [...(next.get(from) ?? []), to]);
  const reported = new Set<string>();
  return [...next.keys()].flatMap((start) => {
    if (reported.has(start)) return [];
    const before = new Map<string, string>();
    const queue = [start];
    for (const file of queue) {
      if (file === start && before.has(start)) break;
      for (const to of next.get(file) ?? []) {
        if (before.has(to)) continue;
        before.set(to, file);
        queue.push(to);
      }
    }
    if (!before.has(start)) return [];
    const way = [start];
    for (let file = before.get(start); file !== undefined && file !== start; file = before.get(file))
      way.unshift(file);
    for (const file of way) reported.add(file);
    return [`files in a circle: ${[start, ...way].join(' → ')}`];
  });
}

/** Every contradiction between the code and the table of docs/architecture.md, a sentence each. */
export function layerFaults(document: string, files: readonly TextFile[]): string[] {
  const code = files.filter(({ name }) => isCpp(name) || isScript(name));
  const layers = layersOf(document);
  const arrows = arrowsOf(code);
  return [...tableFaults(layers, code), ...arrowFaults(layers, code, arrows), ...circles(arrows)];
}
