import { floatTensor } from '../onnx/build.ts';
import { attribute, floatValues } from '../onnx/graph.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';

/** A constant with its values; no dimensions means a scalar. */
export interface Floats {
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** A float32 graph under rewriting: producers, consumers and constants by tensor name. */
export class FloatGraph {
  readonly graph: GraphProto;

  constructor(graph: GraphProto) {
    this.graph = graph;
  }

  producer(tensor: string | undefined): NodeProto | undefined {
    return tensor === undefined ? undefined : this.graph.node.find((node) => node.output.includes(tensor));
  }

  consumers(tensor: string): readonly NodeProto[] {
    return this.graph.node.filter((node) => node.input.includes(tensor));
  }

  /** Returns the only consumer of a tensor that is not a graph output; otherwise undefined. */
  soleConsumer(tensor: string): NodeProto | undefined {
    const [reader, ...others] = this.consumers(tensor);
    const isOutput = this.graph.output.some(({ name }) => name === tensor);
    return others.length === 0 && !isOutput ? reader : undefined;
  }

  constant(tensor: string | undefined): Floats | undefined {
    const found = this.graph.initializer.find(({ name }) => name === tensor);
    const values = floatValues(found);
    return found && values && { dims: found.dims.map(Number), values };
  }

  /** Returns the value of a constant with one element. */
  number(tensor: string | undefined): number | undefined {
    const values = this.constant(tensor)?.values;
    return values?.length === 1 ? values[0] : undefined;
  }

  /** Adds a constant under an unused name derived from `name` and returns that name. */
  add(name: string, { dims, values }: Floats): string {
    this.graph.initializer.push(floatTensor(name, dims, values));
    return name;
  }

  /** Replaces one node by several; `replaced` may be among them. */
  replace(replaced: NodeProto, nodes: readonly NodeProto[]): void {
    this.graph.node.splice(this.graph.node.indexOf(replaced), 1, ...nodes);
  }
}

/** Returns the name of the only output of a node. Throws for a node with several. */
export function outputOf({ name, output: [only, ...others] }: NodeProto): string {
  if (only === undefined || others.length > 0) throw new RangeError(`${name} has not one output`);
  return only;
}

/** Returns the other input of a node with two inputs. */
export const otherInputOf = (node: NodeProto, tensor: string): string | undefined =>
  node.input.length === 2 ? node.input.find((name) => name !== tensor) : undefined;

/** Returns the number of groups of a convolution. */
export const groupsOf = (node: NodeProto): number => Number(attribute(node, 'group')?.i ?? 1n);
