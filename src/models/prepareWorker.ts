import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { type Compiled, compile } from '../compiler/compile.ts';
import { type Form, precisionOfForm, preparerOf } from '../compiler/form.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { ModelError, unsupported } from './error.ts';
import { writeNetworkFile } from './files.ts';
import { networkFiles } from './layout.ts';
import type { PreparedRecord } from './record.ts';
import { readTable } from './scaleTable.ts';

/** What the worker gets. */
export interface PrepareTask {
  readonly modelsDir: string;
  readonly entry: CatalogueEntry;
  readonly form: Form;
}

/**
 * Writes the prepared file of a form and its record from the published file, whose checksum it verifies while reading.
 * Memory: the source file and one of its tensors. Rejects with ModelError.
 */
async function prepare({ modelsDir, entry, form }: PrepareTask): Promise<PreparedRecord> {
  const { manifest } = entry;
  const files = networkFiles(modelsDir, manifest, form);
  const source = await readFile(files.source).catch((cause: unknown) => {
    throw new ModelError('MODEL_MISSING', `The network ${manifest.name} has not been pulled.`, { cause });
  });
  const sourceSha256 = createHash('sha256').update(source).digest('hex');
  if (sourceSha256 !== manifest.file.sha256) {
    throw new ModelError(
      'MODEL_DAMAGED',
      `${files.source} is damaged: its sha256 is ${sourceSha256}, expected ${manifest.file.sha256}. ` +
        `Run \`cutout models pull ${manifest.name}\`.`,
    );
  }
  const read = precisionOfForm(form) === 'int8' ? await readTable(entry) : undefined;
  const table = read?.parse();
  let compiled: Compiled;
  try {
    compiled = compile(source, manifest, form, table);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw unsupported(`The network ${manifest.name} cannot be prepared: ${reason}.`, cause);
  }
  // The old record is removed first: a file without a record counts as missing, never as damaged.
  await rm(files.record, { force: true });
  const written = await writeNetworkFile(files.prepared, compiled.pieces);
  const record: PreparedRecord = {
    preparer: preparerOf(form),
    sourceSha256,
    ...written,
    precision: compiled.precision,
    outputs: [...compiled.outputs],
    freeBatch: compiled.freeBatch,
    sizeStep: compiled.sizeStep,
    ...(read && { tableSha256: read.sha256 }),
    ...((form === 'int8-operators' || form === 'bf16' || form === 'gpu') && {
      operators: compiled.operators,
    }),
    ...(compiled.memory && { memory: compiled.memory }),
  };
  await writeNetworkFile(files.record, [Buffer.from(`${JSON.stringify(record, null, 2)}\n`)]);
  return record;
}

// What is thrown here becomes the worker's event `error`.
parentPort?.postMessage(await prepare(workerData as PrepareTask));
