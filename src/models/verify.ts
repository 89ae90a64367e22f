import { type Form, precisionOfForm, preparerOf } from '../compiler/form.ts';
import { codeOf } from '../files.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { digestFile } from './files.ts';
import type { NetworkFiles } from './layout.ts';
import { findFiles, type Place } from './locate.ts';
import type { Manifest } from './manifest.ts';
import { type PreparedRecord, readRecord } from './record.ts';
import { readTable } from './scaleTable.ts';

/** Matches its checksum; missing; or present with other bytes. */
export type SourceState = 'ok' | 'missing' | 'damaged';
/** As above; outdated: valid, but made by another version of preparation or from another file. */
type PreparedState = SourceState | 'outdated';

const absent = (error: unknown): undefined => {
  if (codeOf(error) !== 'ENOENT') throw error;
};

/** Reads all of the published file. */
export async function verifySource(files: NetworkFiles, manifest: Manifest): Promise<SourceState> {
  const found = await digestFile(files.source).catch(absent);
  if (!found) return 'missing';
  return found.sha256 === manifest.file.sha256 ? 'ok' : 'damaged';
}

/**
 * Whether the record matches this version of preparation, this manifest and its scale table; the network
 * itself is not read.
 */
async function isCurrent(record: PreparedRecord, entry: CatalogueEntry, form: Form): Promise<boolean> {
  const { manifest } = entry;
  const precision = precisionOfForm(form);
  return (
    record.preparer === preparerOf(form) &&
    record.sourceSha256 === manifest.file.sha256 &&
    // A program for a GPU gives the matte alone; a network that cannot be one, or is for TensorRT, stays as it was published.
    (form === 'gpu' ||
      ((form === 'tensorrt' || record.precision === precision) && record.outputs[1] === manifest.features)) &&
    (precision !== 'int8' || record.tableSha256 === (await readTable(entry))?.sha256)
  );
}

/** Reads all of the prepared file: 0.2 to 0.5 s for 176 MB. */
export async function verifyPrepared(
  files: NetworkFiles,
  entry: CatalogueEntry,
  form: Form,
): Promise<PreparedState> {
  const record = await readRecord(files);
  if (!record) return 'missing';
  if (!(await isCurrent(record, entry, form))) return 'outdated';
  const found = await digestFile(files.prepared).catch(absent);
  if (!found) return 'missing';
  return found.sha256 === record.sha256 ? 'ok' : 'damaged';
}

/** Whether the record beside a network's prepared file is current; false without one. */
export async function isPreparedCurrent(name: string, place: Place): Promise<boolean> {
  const { entry, form, files } = await findFiles(name, place);
  const record = await readRecord(files);
  return record !== undefined && isCurrent(record, entry, form);
}
