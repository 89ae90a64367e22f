import { floatTensor } from '../onnx/build.ts';
import { attribute, FLOAT } from '../onnx/graph.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';

/** A constant as numbers; no dimension means a scalar. */
export interface Floats {
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** A graph of 32-bit floats while it is rewritten: what makes a tensor, what reads it, what is constant. */
export class FloatGraph {
  readonly graph: GraphProto;

  constructor(graph: GraphProto) {
    this.graph = graph;
  }

  maker(tensor: string | undefined): NodeProto | undefined {
    return tensor === undefined ? undefined : this.graph.node.find((node) => node.output.includes(tensor));
  }

  readers(tensor: string): readonly NodeProto[] {
    return this.graph.node.filter((node) => node.input.includes(tensor));
  }

  /** What alone reads a tensor that is no output of the graph. */
  onlyReader(tensor: string): NodeProto | undefined {
    const [reader, ...others] = this.readers(tensor);
    const isOutput = this.graph.output.some(({ name }) => name === tensor);
    return others.length === 0 && !isOutput ? reader : undefined;
  }

  constant(tensor: string | undefined): Floats | undefined {
    const found = this.graph.initializer.find(({ name }) => name === tensor);
    if (found?.dataType !== FLOAT || found.rawData.length === 0) return undefined;
    return {
      dims: found.dims.map(Number),
      values: new Float32Array(Uint8Array.from(found.rawData).buffer),
    };
  }

  /** The value of a constant of one number. */
  number(tensor: string | undefined): number | undefined {
    const values = this.constant(tensor)?.values;
    return values?.length === 1 ? values[0] : undefined;
  }

  /** Adds a constant under a name that is not in use and returns the name. */
  add(name: string, { dims, values }: Floats): string {
    this.graph.initializer.push(floatTensor(name, dims, values));
    return name;
  }

  /** Puts nodes in the place of one; `replaced` may be among them. */
  replace(replaced: NodeProto, nodes: readonly NodeProto[]): void {
    this.graph.node.splice(this.graph.node.indexOf(replaced), 1, ...nodes);
  }
}

/** The one output of a node. */
export function outputOf({ name, output: [only, ...others] }: NodeProto): string {
  if (only === undefined || others.length > 0) throw new RangeError(`${name} has not one output`);
  return only;
}

/** The input beside `tensor` of a node of two. */
export const besides = (node: NodeProto, tensor: string): string | undefined =>
  node.input.length === 2 ? node.input.find((name) => name !== tensor) : undefined;

/** Groups of a convolution. */
export const groupsOf = (node: NodeProto): number => Number(attribute(node, 'group')?.i ?? 1n);
