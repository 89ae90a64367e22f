import { FORMS, type Form, precisionOfForm } from '../compiler/form.ts';
import type { Provider } from '../engine/types.ts';
import { exists } from '../files.ts';
import { type Catalogue, type CatalogueEntry, isAdded, listCatalogue } from '../models/catalogue.ts';
import { networkFiles } from '../models/layout.ts';
import { measuredRun } from '../models/measured.ts';
import { memoryText, readRecord } from '../models/record.ts';
import { table } from './output.ts';

/** Forms whose prepared files exist; their contents are not checked. */
export async function preparedIn(modelsDir: string, { manifest }: CatalogueEntry): Promise<Form[]> {
  const found: Form[] = [];
  for (const form of FORMS) {
    const files = networkFiles(modelsDir, manifest, form);
    if ((await readRecord(files)) && (await exists(files.prepared))) found.push(form);
  }
  return found;
}

interface ListOptions {
  readonly catalogue: Catalogue;
  readonly modelsDir: string;
  readonly device: Provider;
  readonly defaultNetwork: string;
  /** Name of the network beside it; undefined: none. */
  readonly second?: string | undefined;
}

/** A network of `cutout models list --json`. */
async function describe(entry: CatalogueEntry, { modelsDir, device, defaultNetwork, second }: ListOptions) {
  const { name, title, role, licence, file, input, quality } = entry.manifest;
  const prepared = await preparedIn(modelsDir, entry);
  const isPulled = prepared.length === 0 && (await exists(networkFiles(modelsDir, entry.manifest).source));
  const run = await measuredRun(modelsDir, entry.manifest, device);
  const used = prepared.find((form) => precisionOfForm(form) === run?.precision) ?? prepared[0];
  const record = used && (await readRecord(networkFiles(modelsDir, entry.manifest, used)));
  return {
    name,
    title,
    role,
    licence,
    input: { width: input.width, height: input.height },
    /** Length of the published file. */
    bytes: file.bytes,
    /** Judged by the existence of files. */
    state: prepared.length > 0 ? 'ready' : isPulled ? 'pulled' : 'absent',
    prepared,
    /** Whether it is CUTOUT_MODEL. */
    inUse: name === defaultNetwork,
    /** Whether it looks at what leaves that one in doubt (CUTOUT_SECOND_MODEL). */
    second: name === second,
    /** Whether `cutout models add` added it. */
    added: isAdded(modelsDir, entry),
    /** Milliseconds of a run on this machine, and its precision; null: not measured. */
    runMs: run?.runMs ?? null,
    runPrecision: run?.precision ?? null,
    /** What that form, or else the first that is prepared, takes on the CPU; null: not prepared. */
    memory: record?.memory ?? null,
    quality: quality ?? null,
  };
}

/** Every network, by name. Rejects with ModelError for an invalid manifest. */
export async function listNetworks(options: ListOptions) {
  const entries = await listCatalogue(options.catalogue);
  return Promise.all(entries.map((entry) => describe(entry, options)));
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

export function listTable(networks: Awaited<ReturnType<typeof listNetworks>>): string {
  const rows = networks.map((network) => {
    const { name, licence, bytes, runMs, runPrecision, quality, state, inUse, second, added } = network;
    const mark = inUse ? '*' : second ? '+' : added ? '#' : ' ';
    const restricted = licence.restricted ? '!' : '';
    return [
      `${mark} ${cut(name, maxName)}`,
      `${cut(licence.name, maxLicence - restricted.length)}${restricted}`,
      (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0).padStart(4),
      runMs === null ? '–' : `${runMs.toFixed(0)} ${runPrecision}`,
      quality === null ? '–' : `${share(quality.correlation)} (${quality.interval.map(share).join('–')})`,
      state,
    ];
  });
  const head = ['  NAME', 'LICENCE', '  MB', 'RUN HERE', 'QUALITY', 'STATE'];
  const needs = networks.flatMap(({ name, memory }) =>
    memory ? [`A run of ${name} on the CPU takes ${memoryText(memory)} of memory.\n`] : [],
  );
  return `${table([head, ...rows])}\n${needs.join('')}${notes.join('\n')}\n`;
}
