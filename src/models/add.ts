import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { exists, writeAtomically } from '../files.ts';
import { type CatalogueEntry, catalogueWith, findNetwork, isAdded } from './catalogue.ts';
import { ModelError, unsupported } from './error.ts';
import { type Guesses, guess } from './guess.ts';
import { UNFINISHED } from './layout.ts';
import { type Manifest, manifestSchema } from './manifest.ts';
import { MAX_MODEL_BYTES, readUntrusted } from './untrusted.ts';

/** A network's file that an operator wants to add, and what its graph tells. */
export interface Inspected {
  /** Absolute. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly guesses: Guesses;
}

/** Reads a file that nobody vouches for. Rejects with ModelError, as `readUntrusted` and `guess`. */
export async function inspectFile(given: string): Promise<Inspected> {
  const file = path.resolve(given);
  const found = await stat(file).catch((cause: unknown) => {
    throw new ModelError('MODEL_MISSING', `There is no file ${file}.`, { cause });
  });
  if (found.isDirectory()) throw new ModelError('MODEL_DAMAGED', `${file} is a folder, not an ONNX file.`);
  if (!found.isFile()) throw new ModelError('MODEL_DAMAGED', `${file} is not a regular file.`);
  if (found.size > MAX_MODEL_BYTES) {
    throw new ModelError(
      'MODEL_TOO_LARGE',
      `${file} has ${found.size} bytes; an ONNX file has at most ${MAX_MODEL_BYTES}.`,
    );
  }
  const content = await readFile(file);
  const guesses = guess(readUntrusted(content));
  return { file, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex'), guesses };
}

/** Longest name that CUTOUT_MODEL takes. */
const MAX_NAME = 64;

/** Returns a network's name from that of its file: `My Net (v2).onnx` becomes `my-net-v2`. */
export const nameFrom = (file: string): string =>
  path
    .basename(file, path.extname(file))
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, MAX_NAME);

/** Rejects with ModelError for a name that no network may have, or that one has. */
export async function checkName(modelsDir: string, name: string): Promise<void> {
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) {
    throw unsupported(
      `A network cannot be named "${name}": a name has up to 64 lower-case letters, digits, dots, hyphens and underscores. Give another --name.`,
    );
  }
  const taken = await findNetwork(catalogueWith(modelsDir), name).catch((error: unknown) => {
    if (error instanceof ModelError && error.code === 'MODEL_UNKNOWN') return undefined;
    throw error;
  });
  if (!taken) return;
  const removable = isAdded(modelsDir, taken) ? `, or run \`cutout models remove ${name}\` first` : '';
  throw new ModelError(
    'MODEL_EXISTS',
    `There is a network named ${name} already. Give another --name${removable}.`,
  );
}

/** What the operator says of a network, or its graph. */
interface Description extends Pick<Manifest, 'name' | 'title' | 'input' | 'output' | 'trainedOn'> {
  /** Name of the licence; undefined: nobody said it. */
  readonly licence: string | undefined;
}

/** Returns the network as it will be in the models folder; nothing is written. Throws ModelError for impossible values. */
export function describeAdded(
  modelsDir: string,
  { file, bytes, sha256, guesses }: Inspected,
  { licence, ...description }: Description,
): CatalogueEntry {
  const parsed = manifestSchema.safeParse({
    ...description,
    licence:
      licence === undefined
        ? {
            name: 'unknown terms',
            restricted: true,
            note: 'Whoever added the network did not state a licence: find it before you use the results.',
          }
        : { name: licence, restricted: false },
    source: { kind: 'file', path: file },
    file: { bytes, sha256, confidence: 'confirmed', precision: guesses.precision },
  });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue?.path.join('.') ?? '';
    throw unsupported(`The network cannot be described: ${where}: ${issue?.message}.`);
  }
  return { manifest: parsed.data, folder: path.join(modelsDir, description.name) };
}

/** Writes the manifest of a network whose files are in its folder: it is in the catalogue from then on. */
export async function keepManifest({ manifest, folder }: CatalogueEntry): Promise<void> {
  const file = path.join(folder, 'model.json');
  if (await exists(file)) {
    throw new ModelError('MODEL_EXISTS', `Another process has added a network named ${manifest.name}.`);
  }
  await writeAtomically(file, `${JSON.stringify(manifest, undefined, 2)}\n`, 'replaceDurably', {
    prefix: UNFINISHED,
  });
}
