import { type Matrix, transposed } from '../matrix.ts';
import { type buildNode, GraphBuilder } from '../onnx/build.ts';
import type { Weights } from './ortFile.ts';

/** SAM 2's encoder under construction from its published weights. */
export class Graph extends GraphBuilder {
  readonly #weights: ReadonlyMap<string, Weights>;

  constructor(weights: ReadonlyMap<string, Weights>) {
    super();
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
    return this.floats(dims, this.weights(name, ...dims));
  }

  matrix(name: string, rows: number, columns: number): Matrix {
    return { rows, columns, values: this.weights(name, rows, columns) };
  }

  /** Returns a convolution of 1 x 1 as a matrix [in, out]. */
  pointwise(name: string, from: number, to: number): Matrix {
    return transposed({ rows: to, columns: from, values: this.weights(`${name}.weight`, to, from, 1, 1) });
  }

  op(
    opType: string,
    inputs: readonly string[],
    settings: Parameters<typeof buildNode>[3] = {},
    domain = '',
    output = `value_${this.nodes.length}`,
  ): string {
    return this.node(opType, inputs, output, settings, domain);
  }

  reshape(value: string, dims: readonly number[], output?: string): string {
    return this.op('Reshape', [value, this.integers(dims)], {}, '', output);
  }

  transpose(value: string, perm: readonly number[]): string {
    return this.op('Transpose', [value], { perm });
  }

  /** Returns value [tokens, rows] · matrix. */
  times(value: string, { rows, columns, values }: Matrix): string {
    return this.op('MatMul', [value, this.floats([rows, columns], values)]);
  }

  /** Returns value · matrix + bias. */
  linear(value: string, { rows, columns, values }: Matrix, bias: Float32Array): string {
    return this.op('Gemm', [value, this.floats([rows, columns], values), this.floats([columns], bias)]);
  }

  /** Returns the largest of every four neighbouring tokens. */
  largestOfFour(value: string, tokens: number, channels: number): string {
    const fours = this.reshape(value, [tokens / 4, 4, channels]);
    return this.op('ReduceMax', [fours], { axes: [1], keepdims: 0 });
  }
}
