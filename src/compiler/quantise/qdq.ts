import { clone } from '@bufbuild/protobuf';
import { floatTensor, int64Tensor, newNode, rawTensor } from '../onnx/build.ts';
import { FLOAT, INT8, INT32, UINT8 } from '../onnx/graph.ts';
import { type GraphProto, type NodeProto, NodeProtoSchema, type TensorProto } from '../onnx/onnx_pb.ts';
import type { QuantisedConv } from './arithmetic.ts';
import { type QuantisedTensor, quantise, type Step, type Target } from './quantise.ts';
import type { QuantisationTable } from './table.ts';

type Named = QuantisedTensor<string>;

/** Writes QuantizeLinear and DequantizeLinear around convolutions and additions, which ONNX Runtime then runs in integers. */
class StandardOperators implements Target<string> {
  readonly nodes: NodeProto[] = [];
  readonly #graph: GraphProto;
  #names = 0;

  constructor(graph: GraphProto) {
    this.#graph = graph;
  }

  #fresh(kind: string): string {
    this.#names += 1;
    return `int8/${this.#names}/${kind}`;
  }

  #constant(tensor: TensorProto): string {
    this.#graph.initializer.push(tensor);
    return tensor.name;
  }

  #raw(kind: string, type: number, dims: readonly bigint[], values: ArrayBufferView): string {
    return this.#constant(rawTensor(this.#fresh(kind), type, dims, values));
  }

  #scalar(value: number): string {
    return this.#constant(floatTensor(this.#fresh('scale'), [], Float32Array.of(value)));
  }

  #zero(value: number): string {
    return this.#raw('zero', UINT8, [], Uint8Array.of(value));
  }

  /** Returns the names of the per-channel scales and zero points. */
  #perChannel(scales: Float64Array, zero: number): [string, string] {
    const { length } = scales;
    const zeros = new Uint8Array(length).fill(zero);
    return [
      this.#constant(floatTensor(this.#fresh('scales'), [length], Float32Array.from(scales))),
      this.#raw('zeros', UINT8, [BigInt(length)], zeros),
    ];
  }

  quantise(name: string, { scale, zero }: Step, scales?: Float64Array): string {
    const value = this.#fresh('u8');
    const constants = scales
      ? this.#perChannel(scales, zero)
      : ([this.#scalar(scale), this.#zero(zero)] as const);
    this.nodes.push(newNode('QuantizeLinear', [name, ...constants], [value], scales ? { axis: 1 } : {}));
    return value;
  }

  /** Returns the name of the tensor with the file's single scale, as ONNX Runtime's operators need it. */
  #dequantised({ value, scale, zero }: Named): string {
    const name = this.#fresh('f32');
    this.nodes.push(newNode('DequantizeLinear', [value, this.#scalar(scale), this.#zero(zero)], [name]));
    return name;
  }

  dequantise({ value, scales, zero }: Named, name: string): void {
    this.nodes.push(
      newNode('DequantizeLinear', [value, ...this.#perChannel(scales, zero)], [name], { axis: 1 }),
    );
  }

  move(node: NodeProto, inputs: readonly Named[]): string {
    const value = this.#fresh('u8');
    const names = inputs.map((input) => input.value);
    this.nodes.push(
      Object.assign(clone(NodeProtoSchema, node), {
        input: [...names, ...node.input.slice(names.length)],
        output: [value],
      }),
    );
    return value;
  }

  add(a: Named, b: Named, output: Step): string {
    const sum = this.#fresh('f32');
    this.nodes.push(newNode('Add', [this.#dequantised(a), this.#dequantised(b)], [sum]));
    return this.quantise(sum, output);
  }

  pad({ value, zero, scales }: Named, channels: number): string {
    const padded = this.#fresh('u8');
    const ends = Array.from({ length: 8 }, (_, at) => (at === 5 ? BigInt(channels - scales.length) : 0n));
    const pads = this.#constant(int64Tensor(this.#fresh('pads'), ends));
    this.nodes.push(newNode('Pad', [value, pads, this.#zero(zero)], [padded]));
    return padded;
  }

  conv(node: NodeProto, input: Named, conv: QuantisedConv, dims: readonly bigint[], output: Step): string {
    const count = [BigInt(conv.bias.length)];
    const weightScales = this.#raw('scales', FLOAT, count, conv.weightScales);
    const biasScales = this.#raw(
      'scales',
      FLOAT,
      count,
      conv.weightScales.map((step) => step * input.scale),
    );
    const zeros = (type: number, bytes: number) =>
      this.#raw('zeros', type, count, new Uint8Array(conv.bias.length * bytes));
    const [weight, shift, sum] = [this.#fresh('f32'), this.#fresh('f32'), this.#fresh('f32')];
    const dequantise = (inputs: string[], made: string) =>
      newNode('DequantizeLinear', inputs, [made], { axis: 0 });
    this.nodes.push(
      dequantise([this.#raw('weights', INT8, dims, conv.weights), weightScales, zeros(INT8, 1)], weight),
      dequantise([this.#raw('bias', INT32, count, conv.bias), biasScales, zeros(INT32, 4)], shift),
      Object.assign(clone(NodeProtoSchema, node), {
        input: [this.#dequantised(input), weight, shift],
        output: [sum],
      }),
    );
    return this.quantise(sum, output);
  }

  sum(value: string, channels: number, scale: number, low: number, name: string): void {
    const ones = this.#raw('ones', UINT8, [1n, BigInt(channels), 1n, 1n], new Uint8Array(channels).fill(1));
    const sum = this.#fresh('i32');
    const above = this.#fresh('f32');
    this.nodes.push(
      newNode('ConvInteger', [value, ones], [sum]),
      newNode('DequantizeLinear', [sum, this.#scalar(scale)], [above]),
      newNode('Add', [above, this.#scalar(low)], [name]),
    );
  }

  keep(node: NodeProto, shaped?: Named): void {
    this.nodes.push(shaped ? Object.assign(clone(NodeProtoSchema, node), { input: [shaped.value] }) : node);
  }
}

/**
 * Rewrites a float32 network so that ONNX Runtime runs its convolutions on 8-bit integers with the scales of `table`.
 * Modifies `graph`. Throws a RangeError if table and network do not match.
 * @param floats reads the values of a float tensor in any encoding into a new array
 */
export function quantiseGraph(
  graph: GraphProto,
  table: QuantisationTable,
  floats: (tensor: TensorProto) => Float32Array,
): void {
  const target = new StandardOperators(graph);
  quantise(graph, table, floats, target);
  graph.node = target.nodes;
}
