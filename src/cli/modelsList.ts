import { FORMS } from '../compiler/form.ts';
import type { Provider } from '../engine/types.ts';
import { exists } from '../files.ts';
import { type Catalogue, type CatalogueEntry, isAdded, listCatalogue } from '../models/catalogue.ts';
import { networkFiles } from '../models/layout.ts';
import { measuredRun } from '../models/measured.ts';
import { memoryText, readRecord } from '../models/record.ts';
import { table } from './output.ts';

/** The records of the prepared forms, judged by the existence of files; their contents are not checked. */
async function recordsOf(modelsDir: string, { manifest }: CatalogueEntry) {
  const found = await Promise.all(
    FORMS.map(async (form) => {
      const files = networkFiles(modelsDir, manifest, form);
      const record = await readRecord(files);
      return record && (await exists(files.prepared)) ? record : [];
    }),
  );
  return found.flat();
}

interface ListOptions {
  readonly catalogue: Catalogue;
  readonly modelsDir: string;
  readonly device: Provider;
  readonly defaultNetwork: string;
  /** Name of the network beside it; undefined: none. */
  readonly second?: string | undefined;
}

/** Widths of the columns that may hold long text, so that a line has at most 80 characters. */
const maxName = 24;
const maxLicence = 13;

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** A number from 0 to 1. */
const share = (value: number) => value.toFixed(2).replace(/^0/, '');

const notes = [
  '* in use (CUTOUT_MODEL), + the second one (CUTOUT_SECOND_MODEL), # added by you.',
  '! restricted: read models/<name>/CARD.md first.',
  'RUN HERE: milliseconds of one run of the network, and its precision, kept by the',
  'first start, `doctor --measure` and `models add`; – where it was not measured.',
  'QUALITY: median correlation with masks by people of the same 33 photos, and its',
  '95 % interval: where intervals overlap, no difference is shown.',
  'Best with hair: isnet. Apache-2.0, 0.39 of its time: u2net (models/README.md).',
];

/** Returns a row of the table, and a sentence on the memory that a run on the CPU takes, empty where that is not known. */
async function describe(
  entry: CatalogueEntry,
  { modelsDir, device, defaultNetwork, second }: ListOptions,
): Promise<{ readonly row: string[]; readonly need: string }> {
  const { name, licence, file, quality } = entry.manifest;
  const run = await measuredRun(modelsDir, entry.manifest, device);
  const records = await recordsOf(modelsDir, entry);
  const isPulled = await exists(networkFiles(modelsDir, entry.manifest).source);
  const added = isAdded(modelsDir, entry) ? '#' : ' ';
  const mark = name === defaultNetwork ? '*' : name === second ? '+' : added;
  const restricted = licence.restricted ? '!' : '';
  const row = [
    `${mark} ${cut(name, maxName)}`,
    `${cut(licence.name, maxLicence - restricted.length)}${restricted}`,
    (file.bytes / 1e6).toFixed(file.bytes < 1e7 ? 1 : 0).padStart(4),
    run ? `${run.runMs.toFixed(0)} ${run.precision}` : '–',
    quality ? `${share(quality.correlation)} (${quality.interval.map(share).join('–')})` : '–',
    records.length > 0 ? 'ready' : isPulled ? 'pulled' : 'absent',
  ];
  // That of the form that runs here, or else of the first that is prepared.
  const { memory } = records.find(({ precision }) => precision === run?.precision) ?? records[0] ?? {};
  const need = memory ? `A run of ${name} on the CPU takes ${memoryText(memory)} of memory.\n` : '';
  return { row, need };
}

/** A table of every network, by name. Rejects with ModelError for an invalid manifest. */
export async function listNetworks(options: ListOptions): Promise<string> {
  const entries = await listCatalogue(options.catalogue);
  const networks = await Promise.all(entries.map((entry) => describe(entry, options)));
  const head = ['  NAME', 'LICENCE', '  MB', 'RUN HERE', 'QUALITY', 'STATE'];
  const needs = networks.map(({ need }) => need).join('');
  return `${table([head, ...networks.map(({ row }) => row)])}\n${needs}${notes.join('\n')}\n`;
}
