import path from 'node:path';
import { z } from 'zod';
import { FORMS, type Precision } from '../compiler/form.ts';
import type { Provider } from '../engine/types.ts';
import { exists, writeAtomically } from '../files.ts';
import { readKept } from './json.ts';
import { networkFiles, UNFINISHED } from './layout.ts';
import type { Manifest } from './manifest.ts';
import { processorKey } from './optimised.ts';
import { readRecord } from './record.ts';

/** The time that one run of a network took on this machine, kept beside its files. */
const measuredSchema = z.strictObject({
  runMs: z.number().nonnegative(),
  device: z.enum(['cpu', 'cuda', 'tensorrt', 'webgpu']),
  /** Result of `processorKey`; empty where it is unknown. */
  processor: z.string(),
  /** Of the prepared file that was run. */
  sha256: z.string(),
});

const fileOf = (modelsDir: string, manifest: Manifest) =>
  path.join(networkFiles(modelsDir, manifest).folder, 'measured.json');

/** Keeps the time of a run of `file`, a prepared one, for `measuredRun`. Where the folder cannot be written, nothing is kept. */
export async function rememberRun(
  modelsDir: string,
  manifest: Manifest,
  { device, file, runMs }: { readonly device: Provider; readonly file: string; readonly runMs: number },
): Promise<void> {
  const prepared = FORMS.map((form) => networkFiles(modelsDir, manifest, form)).find(
    (files) => files.prepared === file,
  );
  const sha256 = prepared && (await readRecord(prepared))?.sha256;
  if (sha256 === undefined) return;
  const kept = { runMs, device, processor: (await processorKey()) ?? '', sha256 };
  const [to, content] = [fileOf(modelsDir, manifest), `${JSON.stringify(kept)}\n`];
  await writeAtomically(to, content, 'replace', { prefix: UNFINISHED }).catch(() => {});
}

/**
 * Milliseconds and precision of a run that was measured on this processor and device with a file that is still there;
 * undefined without one.
 */
export async function measuredRun(
  modelsDir: string,
  manifest: Manifest,
  device: Provider,
): Promise<{ readonly runMs: number; readonly precision: Precision } | undefined> {
  const kept = await readKept(measuredSchema, fileOf(modelsDir, manifest));
  if (kept?.device !== device || kept.processor !== ((await processorKey()) ?? '')) return undefined;
  for (const form of FORMS) {
    const files = networkFiles(modelsDir, manifest, form);
    const record = await readRecord(files);
    if (record?.sha256 === kept.sha256 && (await exists(files.prepared)))
      return { runMs: kept.runMs, precision: record.precision };
  }
  return undefined;
}
