import { FLOAT } from '../onnx/graph.ts';

/** A float32 tensor of a network file. */
export interface Weights {
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** Fields by their position in the tables of ONNX Runtime's schema (ort.fbs). */
const SESSION_MODEL = 1;
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZERS = 0;
const TENSOR = { name: 0, dims: 2, dataType: 3, rawData: 4 } as const;

/**
 * Reads the float32 weights of a file in ONNX Runtime's own format, a flatbuffer, by their names. Throws a RangeError for
 * bytes that are no such file.
 */
export function readOrtWeights(file: Uint8Array): ReadonlyMap<string, Weights> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const int = (at: number) => view.getInt32(at, true);
  const uint = (at: number) => view.getUint32(at, true);
  /** Returns where a field of a table is; undefined if it is left out. */
  const field = (table: number, index: number): number | undefined => {
    const vtable = table - int(table);
    const entry = 4 + 2 * index;
    if (entry >= view.getUint16(vtable, true)) return undefined;
    const offset = view.getUint16(vtable + entry, true);
    return offset === 0 ? undefined : table + offset;
  };
  /** Returns what a field refers to: another table, a vector or a text. */
  const referred = (table: number, index: number): number => {
    const at = field(table, index);
    if (at === undefined) throw new RangeError('a part of the file is missing');
    return at + uint(at);
  };
  const bytesOf = (vector: number): Uint8Array => {
    const length = uint(vector);
    if (vector + 4 + length > file.length) throw new RangeError('the file ends early');
    return file.subarray(vector + 4, vector + 4 + length);
  };

  if (file.length < 8 || Buffer.from(file.subarray(4, 8)).toString('latin1') !== 'ORTM')
    throw new RangeError("it is not in ONNX Runtime's format");
  const graph = referred(referred(uint(0), SESSION_MODEL), MODEL_GRAPH);
  const tensors = referred(graph, GRAPH_INITIALIZERS);
  const weights = new Map<string, Weights>();
  for (let i = 0; i < uint(tensors); i++) {
    const at = tensors + 4 + 4 * i;
    const tensor = at + uint(at);
    const type = field(tensor, TENSOR.dataType);
    if (type === undefined || int(type) !== FLOAT) continue;
    const shape = field(tensor, TENSOR.dims);
    const sides = shape === undefined ? undefined : shape + uint(shape);
    const dims = Array.from({ length: sides === undefined ? 0 : uint(sides) }, (_, axis) =>
      Number(view.getBigInt64((sides ?? 0) + 4 + 8 * axis, true)),
    );
    const bytes = bytesOf(referred(tensor, TENSOR.rawData));
    const count = dims.reduce((product, side) => product * side, 1);
    if (bytes.length !== count * 4) throw new RangeError('a tensor has another size than its shape says');
    const name = Buffer.from(bytesOf(referred(tensor, TENSOR.name))).toString();
    // Copied, because the bytes need not be aligned.
    weights.set(name, { dims, values: new Float32Array(Uint8Array.from(bytes).buffer) });
  }
  return weights;
}
