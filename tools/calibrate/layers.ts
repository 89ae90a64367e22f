import type { GraphProto, TensorProto } from '../../src/models/onnx/onnx_pb.ts';

/** Channels of a tensor that a convolution reads, where they come from. */
interface Segment {
  /** A measured tensor. */
  readonly source: string;
  readonly channels: number;
  /** How often it was enlarged on the way. */
  readonly enlarged: number;
}

export interface Convolution {
  readonly name: string;
  /** The tensor it reads, in parts, in the order of its channels. */
  readonly reads: readonly Segment[];
  /** Its result, after the ReLU where there is one. */
  readonly makes: string;
  readonly outputs: number;
  readonly inputs: number;
  readonly taps: number;
  /** [outputs, inputs, taps] */
  readonly weights: Float32Array;
  readonly bias: Float32Array;
}

interface Addition {
  readonly left: string;
  readonly right: string;
  readonly makes: string;
}

export interface Layers {
  readonly convolutions: readonly Convolution[];
  readonly additions: readonly Addition[];
  /** Whether nothing but enlarging reads a tensor. */
  readonly onlyEnlarged: (tensor: string) => boolean;
}

/** The network as convolutions and additions, with what lies between them followed back to where it came from. */
export function layersOf(graph: GraphProto, floats: (tensor: TensorProto) => Float32Array): Layers {
  const initializers = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
  const afterRelu = new Map(
    graph.node
      .filter(({ opType }) => opType === 'Relu')
      .map(({ input, output }) => [input[0] ?? '', output[0] ?? '']),
  );
  const segments = new Map<string, readonly Segment[]>();
  const convolutions: Convolution[] = [];
  const additions: Addition[] = [];
  const known = (name: string) => segments.get(name) ?? [];
  for (const { opType, name, input, output } of graph.node) {
    const [first = '', second = '', third = ''] = input;
    const [result = ''] = output;
    if (opType === 'Conv') {
      const weight = initializers.get(second);
      const shift = initializers.get(third);
      if (!weight || !shift) throw new Error(`${name} has no constant weights and bias`);
      const [outputs = 0, inputs = 0] = weight.dims.map(Number);
      const weights = floats(weight);
      const makes = afterRelu.get(result) ?? result;
      const taps = weights.length / outputs / inputs;
      convolutions.push({
        name,
        reads: known(first),
        makes,
        outputs,
        inputs,
        taps,
        weights,
        bias: floats(shift),
      });
      segments.set(makes, [{ source: makes, channels: outputs, enlarged: 0 }]);
    } else if (opType === 'Add') {
      additions.push({ left: first, right: second, makes: result });
      const channels = known(first).reduce((sum, each) => sum + each.channels, 0);
      segments.set(result, [{ source: result, channels, enlarged: 0 }]);
    } else if (opType === 'MaxPool') {
      segments.set(result, known(first));
    } else if (opType === 'Resize' && segments.has(first)) {
      segments.set(
        result,
        known(first).map((each) => ({ ...each, enlarged: each.enlarged + 1 })),
      );
    } else if (opType === 'Concat' && input.every((each) => segments.has(each))) {
      segments.set(result, input.flatMap(known));
    }
  }
  const outputs = new Set(graph.output.map((value) => value.name));
  const onlyEnlarged = (tensor: string) =>
    !outputs.has(tensor) &&
    graph.node.every(
      ({ opType, input }) => !input.includes(tensor) || opType === 'Resize' || opType === 'Shape',
    );
  return { convolutions, additions, onlyEnlarged };
}
