import { transposed } from '../matrix.ts';
import { rawTensor } from '../onnx/build.ts';
import { isDeformable } from '../onnx/deformable.ts';
import { attribute, constants, FLOAT, INT8, onlyConsumerOf } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';
import { type ConvGeometry, convGeometry, whereSupported } from './geometry.ts';
import { ownNode, PREFIX } from './matmul.ts';
import { type MatrixFormat, packMatrix } from './pack.ts';

/** Convolutions with fewer values under the kernel, or fewer outputs, are left to ONNX Runtime. */
const LEAST_INPUTS = 16;
const LEAST_OUTPUTS = 8;

/** What a convolution's sums become, channel by channel: sum * factor + bias, then at least 0 with `relu`. */
interface Finish {
  readonly to: string;
  readonly factors: Float32Array;
  readonly bias: Float32Array;
  readonly relu: boolean;
  /** Nodes that it replaces. */
  readonly nodes: readonly NodeProto[];
}

/** Finds the convolutions of a network that can be computed in bf16 or 8 bits, and replaces them. */
class ConvolutionsConverter {
  readonly #graph: GraphProto;
  readonly #floatsOf: FloatsOf;
  readonly #constants;
  readonly #onlyConsumer;
  readonly #format: MatrixFormat;

  constructor(graph: GraphProto, floatsOf: FloatsOf, format: MatrixFormat) {
    this.#format = format;
    this.#graph = graph;
    this.#floatsOf = floatsOf;
    this.#constants = constants(graph);
    this.#onlyConsumer = onlyConsumerOf(graph);
  }

  run(): void {
    const replaced = new Map<NodeProto, NodeProto | undefined>();
    for (const node of this.#graph.node) {
      const geometry = this.#geometry(node);
      if (!geometry) continue;
      const finish = this.#finish(node, geometry.outputs);
      for (const each of finish.nodes) replaced.set(each, undefined);
      // The last one: what a sum is made with may be written behind the convolution.
      replaced.set(finish.nodes.at(-1) ?? node, this.#made(node, geometry, finish));
    }
    this.#graph.node = this.#graph.node.flatMap((node) =>
      replaced.has(node) ? (replaced.get(node) ?? []) : [node],
    );
  }

  #values(name: string | undefined): Float32Array | undefined {
    const tensor = this.#constants.get(name ?? '');
    return tensor && this.#floatsOf(tensor);
  }

  /** Returns the shape of a convolution that is worth an operator of its own. */
  #geometry(node: NodeProto): ConvGeometry | undefined {
    const deformable = isDeformable(node);
    if (!deformable && (node.opType !== 'Conv' || node.domain !== '')) return undefined;
    const dims = this.#constants.get(node.input[1] ?? '')?.dims;
    const shared = (attribute(node, 'offset_group')?.i ?? 1n) === 1n && (node.input[4] ?? '') !== '';
    const bias = node.input[deformable ? 3 : 2] ?? '';
    if (!dims || (deformable && !shared) || (bias !== '' && !this.#constants.has(bias))) return undefined;
    const geometry = whereSupported(() => convGeometry(node, dims));
    const inputs = geometry ? geometry.channels * geometry.kernel[0] * geometry.kernel[1] : 0;
    return geometry && inputs >= LEAST_INPUTS && geometry.outputs >= LEAST_OUTPUTS ? geometry : undefined;
  }

  /** Follows the constant sums, the normalisation and the ReLU behind a convolution. */
  #finish(node: NodeProto, outputs: number): Finish {
    const [to = ''] = node.output;
    const given = this.#values(node.input[isDeformable(node) ? 3 : 2]);
    let finish: Finish = {
      to,
      factors: new Float32Array(outputs).fill(1),
      bias: given ?? new Float32Array(outputs),
      relu: false,
      nodes: [node],
    };
    for (let more: Finish | undefined = finish; more !== undefined; more = this.#followed(finish))
      finish = more;
    return finish;
  }

  #followed({ to, factors, bias, relu, nodes }: Finish): Finish | undefined {
    const next = this.#onlyConsumer(to);
    if (next?.domain !== '' || relu) return undefined;
    const then = { to: next.output[0] ?? '', nodes: [...nodes, next], factors, bias, relu };
    if (next.opType === 'Relu') return { ...then, relu: true };
    if (next.opType === 'Add') {
      const other = next.input.find((name) => name !== to);
      const sides = this.#constants.get(other ?? '')?.dims.slice(-3);
      const added = this.#values(other);
      if (`${sides}` !== `${[factors.length, 1, 1]}` || !added) return undefined;
      return { ...then, bias: bias.map((each, at) => each + (added[at] ?? 0)) };
    }
    if (next.opType !== 'BatchNormalization' || next.input[0] !== to) return undefined;
    const [scale, shift, mean, variance] = next.input.slice(1).map((name) => this.#values(name));
    if (!scale || !shift || !mean || !variance || next.output.length !== 1) return undefined;
    const epsilon = attribute(next, 'epsilon')?.f ?? 1e-5;
    const by = scale.map((each, at) => each / Math.sqrt((variance[at] ?? 0) + epsilon));
    return {
      ...then,
      factors: factors.map((each, at) => each * (by[at] ?? 0)),
      bias: bias.map((each, at) => (each - (mean[at] ?? 0)) * (by[at] ?? 0) + (shift[at] ?? 0)),
    };
  }

  #made(node: NodeProto, geometry: ConvGeometry, { to, factors, bias, relu }: Finish): NodeProto {
    const { outputs, channels, kernel, stride, dilation, pads } = geometry;
    const taps = kernel[0] * kernel[1];
    const inputs = channels * taps;
    const values = this.#values(node.input[1]) ?? new Float32Array();
    const matrix = new Float32Array(values.length);
    for (let output = 0; output < outputs; output++) {
      const own = values.subarray(output * inputs, (output + 1) * inputs);
      const row = transposed({ rows: channels, columns: taps, values: own }).values;
      matrix.set(
        row.map((each) => each * (factors[output] ?? 0)),
        output * inputs,
      );
    }
    const { weights, constants } = packMatrix(matrix, [outputs, inputs], bias, this.#format);
    const tensors = [
      rawTensor(`${to}/${this.#format}/weights`, INT8, [weights.length], weights),
      rawTensor(`${to}/${this.#format}/biases`, FLOAT, [constants.length], constants),
    ];
    this.#graph.initializer.push(...tensors);
    const [from = '', , offsets = '', , masks = ''] = node.input;
    const deformable = isDeformable(node);
    const names = [from, ...tensors.map(({ name }) => name), ...(deformable ? [offsets, masks] : [])];
    return ownNode(`${PREFIX[this.#format]}${deformable ? 'DeformConv' : 'Conv'}`, names, to, {
      ...{ channels, outputs, kernel, stride, dilation, pads },
      relu: relu ? 1 : 0,
    });
  }
}

/**
 * Makes the convolutions of a float network, plain and deformable, operators of Cutout in bf16 or 8 bits (`Bf16Conv`,
 * `Int8DeformConv` and so on: native/ort/custom_operators.h), each with the sums, normalisation and ReLU behind it.
 */
export const replaceConvolutions = (graph: GraphProto, floats: FloatsOf, format: MatrixFormat): void =>
  new ConvolutionsConverter(graph, floats, format).run();
