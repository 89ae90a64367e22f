import type { Form } from '../form.ts';
import { allTensors, FLOAT } from './graph.ts';
import type { GraphProto, NodeProto } from './onnx_pb.ts';
import { countOf, inferShapes, type Tensor, worksInPlace } from './shapes.ts';

/** Bytes of an element by TensorProto.data_type; of all others 4. */
const BYTES: Readonly<Record<number, number>> = {
  ...{ 2: 1, 3: 1, 4: 2, 5: 2, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2 },
};

/** More than any machine has, and small enough that sums of them stay exact enough to compare. */
const MOST = 2 ** 52;

const bytesOf = ({ shape, type }: Tensor): number => Math.min(countOf(shape) * (BYTES[type] ?? 4), MOST);

/** Bytes that a graph keeps. */
export interface Need {
  /** Constants of floats, which ONNX Runtime packs. */
  readonly weights: number;
  /** Other constants, and what ONNX Runtime computes from constants before the first run. */
  readonly others: number;
  /** Most bytes of maps that live at the same time. */
  readonly maps: number;
  /** Whether the size of every map is known; without, more may be needed. */
  readonly complete: boolean;
}

/** Returns the bytes that a node takes while it runs, in addition to its inputs and outputs: what every window reads is copied. */
function workspace({ opType, input, output }: NodeProto, tensors: ReadonlyMap<string, Tensor>): number {
  const element = { DeformConv: 4, ConvInteger: 1 }[opType] ?? 0;
  if (element === 0) return 0;
  const [, channels = 0, ...kernel] = tensors.get(input[1] ?? '')?.shape ?? [];
  const sides = tensors.get(output[0] ?? '')?.shape.slice(2) ?? [];
  return Math.min(element * channels * countOf(kernel) * countOf(sides), MOST);
}

/** Returns what a graph needs for a first input of this shape, node after node; no map is allocated. */
export function needOf(graph: GraphProto, input: readonly number[]): Need {
  const tensors = inferShapes(graph, input);
  const sizeOf = (name: string) => {
    const tensor = tensors.get(name);
    return tensor ? bytesOf(tensor) : 0;
  };
  // The shape of a map is known without it.
  const readers = graph.node.filter(({ opType }) => opType !== 'Shape');
  const last = new Map(readers.flatMap((node) => node.input.map((name) => [name, node] as const)));
  const outputs = new Set(graph.output.map(({ name }) => name));
  const image = graph.input[0]?.name ?? '';
  const constant = new Set(['', ...graph.initializer.map(({ name }) => name)]);
  /** Constants that nodes compute, and the maps that are held: their bytes. */
  const folded = new Map<string, number>();
  const alive = new Map([[image, sizeOf(image)]]);
  let [held, maps, complete] = [sizeOf(image), 0, true];
  let [weights, others] = [0, 0];
  for (const { dims, dataType } of allTensors(graph)) {
    const bytes = Math.max(0, bytesOf({ shape: dims.map(Number), type: dataType }));
    if (dataType === FLOAT) weights += bytes;
    else others += bytes;
  }
  const free = (name: string) => {
    held -= alive.get(name) ?? 0;
    alive.delete(name);
  };
  for (const node of graph.node) {
    for (const name of node.output) if (name !== '' && !tensors.has(name)) complete = false;
    if (node.opType === 'Shape' || node.input.every((name) => constant.has(name))) {
      for (const name of node.output) folded.set(name, sizeOf(name));
      for (const name of node.output) constant.add(name);
      const computed = [...(node.opType === 'Shape' ? [] : node.input), ...node.output];
      maps = Math.max(
        maps,
        computed.reduce((sum, name) => sum + (folded.get(name) ?? 0), 0),
      );
      continue;
    }
    for (const name of node.input) {
      others += folded.get(name) ?? 0;
      folded.delete(name);
    }
    const dying = node.input.filter((name) => last.get(name) === node && !outputs.has(name));
    for (const name of node.output) {
      const bytes = sizeOf(name);
      const taken = worksInPlace(node) ? dying.find((each) => alive.get(each) === bytes) : undefined;
      if (taken !== undefined) free(taken);
      alive.set(name, bytes);
      held += bytes;
    }
    maps = Math.max(maps, held + workspace(node, tensors));
    for (const name of dying) free(name);
    for (const name of node.output) if (!last.has(name) && !outputs.has(name)) free(name);
  }
  for (const name of outputs) others += folded.get(name) ?? 0;
  return { weights, others, maps, complete };
}

/**
 * What ONNX Runtime takes of weights of floats, which it keeps as they are and packed, and of maps, between whose blocks holes are left;
 * measured on IS-Net, U2-Net, U2-Net p, MODNet, silueta and BiRefNet.
 */
const RUNTIME = { weights: 2.3, maps: 1.6 };

/**
 * What the forms in 8 bits and bf16 take of what floats need, where a program computes them: it plans its memory and has its weights
 * once. ONNX Runtime's operators for 8 bits keep some maps in floats.
 */
const SHARES: Partial<Readonly<Record<Form, typeof RUNTIME>>> = {
  'int8-operators': { weights: 1 / 4, maps: 1 / 4 },
  bf16: { weights: 1 / 2, maps: 1 / 2 },
  int8: { weights: RUNTIME.weights / 3, maps: RUNTIME.maps / 3 },
};

/** Bytes of memory that a network takes in addition to the process when it is opened and runs one image. */
export interface MemoryEstimate {
  readonly bytes: number;
  /** Whether every map is counted; without, it is the least. */
  readonly complete: boolean;
}

/** Returns what a network takes of which this is needed. `form`: the graph is in floats, and a program of that form computes it. */
export function estimateOf({ weights, others, maps, complete }: Need, form?: Form): MemoryEstimate {
  const factors = (form && SHARES[form]) ?? RUNTIME;
  const bytes = Math.round(factors.weights * weights + others + factors.maps * maps);
  return { bytes: Math.min(bytes, MOST), complete };
}
