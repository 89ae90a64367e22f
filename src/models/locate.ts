import type { Form, Precision } from '../compiler/form.ts';
import type { NetworkSpec, Provider } from '../engine/types.ts';
import { type CatalogueEntry, catalogueWith, findNetwork } from './catalogue.ts';
import { unsupported } from './error.ts';
import { networkFiles } from './layout.ts';
import type { Manifest } from './manifest.ts';
import { type PreparedRecord, readRecord } from './record.ts';

/** The network whose outputs classify the subject (models/types). */
export const SUBJECT_DETECTOR = 'centernet';

/** The networks that find the subject that points or a box show. */
export const SUBJECT_ENCODER = 'sam2-tiny';
export const SUBJECT_DECODER = 'sam2-tiny-decoder';

/** Folders of catalogue and networks, and the use a network is needed for. */
export interface Place {
  readonly modelsDir: string;
  readonly device: Provider;
  /** Form to use (precision.ts); default: the device's float format. */
  readonly form?: Form;
  readonly catalogueDir?: string | undefined;
  /** Default: `matte`. */
  readonly role?: Manifest['role'];
}

/**
 * Returns the float format for a device: on a GPU with CUDA Cutout's own for networks that make mattes; with TensorRT the one for it;
 * else float32. Not every GPU computes float16 by WebGPU.
 */
export function floatFormFor({ role }: Manifest, device: Provider): Form {
  if (role !== 'matte') return 'fp32';
  return device === 'cuda' ? 'gpu' : device === 'tensorrt' ? device : 'fp32';
}

/** Returns what the engine needs to open a network's file. */
export const specOf = ({ name, input, output, trainedOn }: Manifest, path: string): NetworkSpec => {
  const { width, height, mean, std } = input;
  return { name, path, width, height, mean, std, output, trainedOn };
};

/** Returns the same in a form for GPUs; `operators` of its facts says whether it is a program, which gives logits. */
export const gpuSpecOf = (
  spec: NetworkSpec,
  { operators, precision }: Pick<PreparedFacts, 'operators' | 'precision'>,
): NetworkSpec => ({
  ...spec,
  fp16: precision === 'fp16',
  ...(operators && { gpuProgram: true, output: 'logit' }),
});

/** What the networks of a role do. */
const USES: Readonly<Record<Manifest['role'], string>> = {
  matte: 'makes mattes',
  detector: 'determines subject types and makes no matte',
  encoder: 'finds what points show and makes no matte',
  decoder: 'finds what points show and makes no matte',
};

/** Returns a network of the catalogue that fits role, device and precision. Rejects with ModelError. */
export async function findFor(
  name: string,
  { modelsDir, catalogueDir, role = 'matte' }: Pick<Place, 'modelsDir' | 'catalogueDir' | 'role'>,
): Promise<CatalogueEntry> {
  const entry = await findNetwork(catalogueWith(modelsDir, catalogueDir), name);
  const made = entry.manifest.role;
  if (made === role) return entry;
  throw unsupported(`The network ${name} ${USES[made]}; it cannot be used as a ${role} network.`);
}

/** The networks of the settings, and where they are. */
interface ConfiguredModels {
  readonly model: string;
  readonly secondModel: string;
  readonly modelsDir: string;
  readonly catalogueDir?: string | undefined;
}

/**
 * Returns the network that looks at what leaves `model` in doubt: `secondModel` itself, or for `auto` by the manifest of `model`; undefined:
 * none. Rejects with ModelError.
 */
export async function secondModelOf({
  model,
  secondModel,
  ...place
}: ConfiguredModels): Promise<string | undefined> {
  if (secondModel === 'off') return undefined;
  return secondModel === 'auto' ? (await findFor(model, place)).manifest.second : secondModel;
}

/** Returns a network, the form for its use and where its files are or will be. Rejects with ModelError. */
export async function findFiles(name: string, place: Place) {
  const entry = await findFor(name, place);
  const { manifest } = entry;
  const form = place.form ?? floatFormFor(manifest, place.device);
  return { entry, form, files: networkFiles(place.modelsDir, manifest, form) };
}

interface PreparedFacts {
  /**
   * Number that both sides of the input must be a multiple of for the prepared network to run at other sizes
   * than the manifest's; 0 if its size is fixed.
   */
  readonly sizeStep: number;
  /** Whether it has an operator of Cutout. */
  readonly operators: boolean;
  /** Undefined without a readable record. */
  readonly precision: Precision | undefined;
  /** Of the prepared network; empty without a readable record. */
  readonly sha256: string;
  readonly memory: PreparedRecord['memory'];
}

/**
 * Reads the record of a prepared network; without a readable one, the size counts as fixed. Rejects with
 * ModelError for an unknown network.
 */
export async function preparedFacts(name: string, place: Place): Promise<PreparedFacts> {
  const record = await readRecord((await findFiles(name, place)).files);
  return {
    sizeStep: record?.sizeStep ?? 0,
    operators: record?.operators ?? false,
    precision: record?.precision,
    sha256: record?.sha256 ?? '',
    memory: record?.memory,
  };
}
