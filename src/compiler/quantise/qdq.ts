import { clone } from '@bufbuild/protobuf';
import { floatTensor, int64Tensor, newNode, rawTensor } from '../onnx/build.ts';
import { FLOAT, INT8, INT32, UINT8 } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import { type GraphProto, type NodeProto, NodeProtoSchema, type TensorProto } from '../onnx/onnx_pb.ts';
import type { QuantisedConv } from './arithmetic.ts';
import { type QuantisedTensor, quantise, type Step, type Target } from './quantise.ts';
import type { QuantisationTable } from './table.ts';

type Named = QuantisedTensor<string>;

const like = (node: NodeProto, changes: { input: string[]; output: string[] }): NodeProto =>
  Object.assign(clone(NodeProtoSchema, node), changes);

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

  #raw(kind: string, type: number, dims: readonly (bigint | number)[], values: ArrayBufferView): string {
    return this.#constant(rawTensor(this.#fresh(kind), type, dims, values));
  }

  #scalar(value: number): string {
    return this.#constant(floatTensor(this.#fresh('scale'), [], Float32Array.of(value)));
  }

  /** Adds a conversion between floats and 8 bits, with one scale or with one of each channel. */
  #convert(
    kind: 'Quantize' | 'Dequantize',
    from: string,
    to: string,
    scale: number | Float64Array,
    zero: number,
  ) {
    const single = typeof scale === 'number';
    const dims = single ? [] : [scale.length];
    const scales = single ? this.#scalar(scale) : this.#raw('scales', FLOAT, dims, Float32Array.from(scale));
    const zeros = new Uint8Array(dims[0] ?? 1).fill(zero);
    const constants = [scales, this.#raw(single ? 'zero' : 'zeros', UINT8, dims, zeros)];
    this.nodes.push(newNode(`${kind}Linear`, [from, ...constants], [to], single ? {} : { axis: 1 }));
    return to;
  }

  quantise(name: string, { scale, zeroPoint }: Step, scales?: Float64Array): string {
    return this.#convert('Quantize', name, this.#fresh('u8'), scales ?? scale, zeroPoint);
  }

  /** Returns the name of the tensor with the file's single scale, as ONNX Runtime's operators need it. */
  #dequantised({ value, scale, zeroPoint }: Named): string {
    return this.#convert('Dequantize', value, this.#fresh('f32'), scale, zeroPoint);
  }

  dequantise({ value, scales, zeroPoint }: Named, name: string): void {
    this.#convert('Dequantize', value, name, scales, zeroPoint);
  }

  move(node: NodeProto, inputs: readonly Named[]): string {
    const value = this.#fresh('u8');
    const names = inputs.map((input) => input.value);
    this.nodes.push(like(node, { input: [...names, ...node.input.slice(names.length)], output: [value] }));
    return value;
  }

  add(a: Named, b: Named, output: Step): string {
    const sum = this.#fresh('f32');
    this.nodes.push(newNode('Add', [this.#dequantised(a), this.#dequantised(b)], [sum]));
    return this.quantise(sum, output);
  }

  pad({ value, zeroPoint, scales }: Named, channels: number): string {
    const padded = this.#fresh('u8');
    const ends = Array.from({ length: 8 }, (_, at) => (at === 5 ? BigInt(channels - scales.length) : 0n));
    const pads = this.#constant(int64Tensor(this.#fresh('pads'), ends));
    const zero = this.#raw('zero', UINT8, [], Uint8Array.of(zeroPoint));
    this.nodes.push(newNode('Pad', [value, pads, zero], [padded]));
    return padded;
  }

  conv(node: NodeProto, input: Named, conv: QuantisedConv, dims: readonly bigint[], output: Step): string {
    const { length } = conv.bias;
    const weightScales = this.#raw('scales', FLOAT, [length], conv.weightScales);
    const steps = conv.weightScales.map((step) => step * input.scale);
    const biasScales = this.#raw('scales', FLOAT, [length], steps);
    const [weight, shift, sum] = [this.#fresh('f32'), this.#fresh('f32'), this.#fresh('f32')];
    const constant = (made: string, type: number, values: string, scales: string, bytes: number) => {
      const zeros = this.#raw('zeros', type, [length], new Uint8Array(length * bytes));
      return newNode('DequantizeLinear', [values, scales, zeros], [made], { axis: 0 });
    };
    this.nodes.push(
      constant(weight, INT8, this.#raw('weights', INT8, dims, conv.weights), weightScales, 1),
      constant(shift, INT32, this.#raw('bias', INT32, [length], conv.bias), biasScales, 4),
      like(node, { input: [this.#dequantised(input), weight, shift], output: [sum] }),
    );
    return this.quantise(sum, output);
  }

  sum(value: string, channels: number, scale: number, low: number, name: string): void {
    const ones = this.#raw('ones', UINT8, [1, channels, 1, 1], new Uint8Array(channels).fill(1));
    const sum = this.#fresh('i32');
    const above = this.#fresh('f32');
    this.nodes.push(
      newNode('ConvInteger', [value, ones], [sum]),
      newNode('DequantizeLinear', [sum, this.#scalar(scale)], [above]),
      newNode('Add', [above, this.#scalar(low)], [name]),
    );
  }

  keep(node: NodeProto): void {
    this.nodes.push(node);
  }
}

/**
 * Rewrites a float32 network so that ONNX Runtime runs its convolutions on 8-bit integers with the scales of `table`.
 * Modifies `graph`. Throws a RangeError if table and network do not match.
 */
export function quantiseGraph(graph: GraphProto, table: QuantisationTable, floats: FloatsOf): void {
  graph.node = quantise(graph, table, floats, new StandardOperators(graph)).nodes;
}
