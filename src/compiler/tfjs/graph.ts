import { z } from 'zod';
import { halfWidener } from '../onnx/half.ts';

const integers = z.array(z.coerce.number().int());

/** An attribute of a node as TensorFlow.js writes it; strings are base64. */
const attributeSchema = z.looseObject({
  s: z.string().optional(),
  b: z.boolean().optional(),
  list: z.looseObject({ i: integers.optional(), s: z.array(z.string()).optional() }).optional(),
  shape: z.looseObject({ dim: z.array(z.looseObject({ size: z.coerce.number().int() })) }).optional(),
});

const nodeSchema = z.looseObject({
  name: z.string(),
  op: z.string(),
  input: z.array(z.string()).default([]),
  attr: z.record(z.string(), attributeSchema).default({}),
});

const weightSchema = z.looseObject({
  name: z.string(),
  shape: z.array(z.number().int().nonnegative()),
  dtype: z.enum(['float32', 'int32']),
  quantization: z.looseObject({ dtype: z.literal('float16') }).optional(),
});

const modelSchema = z.looseObject({
  modelTopology: z.looseObject({ node: z.array(nodeSchema).min(1) }),
  weightsManifest: z.array(z.looseObject({ weights: z.array(weightSchema) })).length(1),
});

export type TfNode = z.infer<typeof nodeSchema>;
type Weight = z.infer<typeof weightSchema>;

/** A constant of the graph, in TensorFlow's layout (images [N,H,W,C], kernels [H,W,in,out]). */
export interface Constant {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** A TensorFlow.js graph model: nodes and constants by name. */
export interface TfGraph {
  readonly nodes: ReadonlyMap<string, TfNode>;
  readonly constants: ReadonlyMap<string, Constant>;
}

const count = ({ shape }: Weight) => shape.reduce((product, side) => product * side, 1);

const bytesOf = (weight: Weight) => count(weight) * (weight.quantization ? 2 : 4);

/**
 * Parses a graph model from its JSON text and its weight file: float16, float32 and int32 values, one tensor
 * after the other. Throws a RangeError for anything else and for a file of another length.
 */
export function readTfGraph(json: string, weights: Uint8Array): TfGraph {
  const parsed = modelSchema.safeParse(JSON.parse(json));
  if (!parsed.success)
    throw new RangeError(`the file is not a TensorFlow.js graph model: ${z.prettifyError(parsed.error)}`);
  const listed = parsed.data.weightsManifest.flatMap((group) => group.weights);
  const expected = listed.reduce((sum, weight) => sum + bytesOf(weight), 0);
  if (weights.length !== expected)
    throw new RangeError(`the weights have ${weights.length} bytes, the model expects ${expected}`);
  const widen = halfWidener();
  const constants = new Map<string, Constant>();
  let at = 0;
  for (const weight of listed) {
    const stored = weights.subarray(at, at + bytesOf(weight));
    at += stored.length;
    const bytes = weight.quantization ? widen(stored) : stored;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const read = (offset: number) =>
      weight.dtype === 'int32' ? view.getInt32(offset, true) : view.getFloat32(offset, true);
    const values = Float32Array.from({ length: count(weight) }, (_, index) => read(index * 4));
    constants.set(weight.name, { shape: weight.shape, values });
  }
  const nodes = new Map(parsed.data.modelTopology.node.map((node) => [node.name, node]));
  return { nodes, constants };
}

const text = (base64: string) => Buffer.from(base64, 'base64').toString('latin1');

/** Attributes of a node, decoded. */
export const settings = ({ name, attr }: TfNode) => ({
  /** Throws a RangeError if the node lacks it. */
  integers(key: string): readonly number[] {
    const list = attr[key]?.list?.i;
    if (!list) throw new RangeError(`${name} has no list of numbers ${key}`);
    return list;
  },
  texts: (key: string): readonly string[] => (attr[key]?.list?.s ?? []).map(text),
  text(key: string): string {
    const value = attr[key]?.s;
    if (value === undefined) throw new RangeError(`${name} has no text ${key}`);
    return text(value);
  },
  flag: (key: string): boolean => attr[key]?.b ?? false,
});
