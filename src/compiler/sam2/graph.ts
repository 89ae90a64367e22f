import { type Matrix, transposed } from '../matrix.ts';
import { buildNode, floatTensor, int64Tensor, type Setting } from '../onnx/build.ts';
import type { NodeProto, TensorProto } from '../onnx/onnx_pb.ts';
import type { Weights } from './ortFile.ts';

/** A graph under construction, whose methods return the names of what they add. */
export class Graph {
  readonly nodes: NodeProto[] = [];
  readonly initializers: TensorProto[] = [];
  readonly #weights: ReadonlyMap<string, Weights>;

  constructor(weights: ReadonlyMap<string, Weights>) {
    this.#weights = weights;
  }

  /** Returns the published weights of this name, which must have this shape. */
  weights(name: string, ...dims: readonly number[]): Float32Array {
    const found = this.#weights.get(name);
    if (found?.dims.join() !== dims.join())
      throw new RangeError(`it has no weights ${name} of ${dims.join(' x ')}`);
    return found.values;
  }

  /** Adds the published weights of this name as a constant. */
  parameter(name: string, ...dims: readonly number[]): string {
    return this.constant(this.weights(name, ...dims), ...dims);
  }

  matrix(name: string, rows: number, columns: number): Matrix {
    return { rows, columns, values: this.weights(name, rows, columns) };
  }

  /** Returns a convolution of 1 x 1 as a matrix [in, out]. */
  pointwise(name: string, from: number, to: number): Matrix {
    return transposed({ rows: to, columns: from, values: this.weights(`${name}.weight`, to, from, 1, 1) });
  }

  constant(values: Float32Array, ...dims: readonly number[]): string {
    const name = `constant_${this.initializers.length}`;
    this.initializers.push(floatTensor(name, dims, values));
    return name;
  }

  op(
    opType: string,
    inputs: readonly string[],
    settings: Readonly<Record<string, Setting>> = {},
    domain = '',
    output = `value_${this.nodes.length}`,
  ): string {
    const node = buildNode(opType, inputs, output, settings);
    node.domain = domain;
    this.nodes.push(node);
    return output;
  }

  reshape(value: string, dims: readonly number[], output?: string): string {
    const shape = `shape_${this.initializers.length}`;
    this.initializers.push(int64Tensor(shape, dims.map(BigInt)));
    return this.op('Reshape', [value, shape], {}, '', output);
  }

  transpose(value: string, perm: readonly number[]): string {
    return this.op('Transpose', [value], { perm });
  }

  /** Returns value [tokens, rows] · matrix. */
  times(value: string, { rows, columns, values }: Matrix): string {
    return this.op('MatMul', [value, this.constant(values, rows, columns)]);
  }

  /** Returns value · matrix + bias. */
  linear(value: string, { rows, columns, values }: Matrix, bias: Float32Array): string {
    return this.op('Gemm', [value, this.constant(values, rows, columns), this.constant(bias, columns)]);
  }

  /** Returns the largest of every four neighbouring tokens. */
  largestOfFour(value: string, tokens: number, channels: number): string {
    const fours = this.reshape(value, [tokens / 4, 4, channels]);
    return this.op('ReduceMax', [fours], { axes: [1], keepdims: 0 });
  }
}
