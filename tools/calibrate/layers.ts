import type { GraphProto, NodeProto, TensorProto } from '../../src/compiler/onnx/onnx_pb.ts';

/** Where a range of channels that a convolution reads comes from. */
interface Segment {
  /** A measured tensor. */
  readonly source: string;
  readonly channels: number;
  /** Number of enlargements on the way. */
  readonly enlarged: number;
}

export interface Convolution {
  readonly name: string;
  /** Its input, as segments in the order of channels. */
  readonly reads: readonly Segment[];
  /** Its output, after the ReLU where there is one. */
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

/** The blocks of a U²-Net in the order of its nodes; each ends with an addition. */
export const STAGES = [
  ...['stage1', 'stage2', 'stage3', 'stage4', 'stage5', 'stage6'],
  ...['stage5d', 'stage4d', 'stage3d', 'stage2d', 'stage1d'],
] as const;

/** A side output: a map of one channel that the matte is computed from. */
interface Head {
  readonly tensor: string;
  /** Whether the matte is the sigmoid of this head alone, not of several fused by a convolution. */
  readonly alone: boolean;
}

export interface Layers {
  /** The convolutions that may be in 8 bits: all but those that fuse heads. */
  readonly convolutions: readonly Convolution[];
  readonly additions: readonly Addition[];
  readonly heads: readonly Head[];
  /** Names of the convolutions that fuse heads: they stay in floats. */
  readonly mixing: readonly string[];
  /** Names of the convolutions that compute the deepest map, and of the first one of the decoder. */
  readonly deepest: readonly string[];
  /** The block that computes a tensor; undefined after the last block. */
  readonly stageOf: (tensor: string) => string | undefined;
  /** Whether a tensor is read by enlargements only. */
  readonly onlyEnlarged: (tensor: string) => boolean;
}

/** The index of each tensor's block: the number of additions before it. */
function stagesOf(nodes: readonly NodeProto[]): Map<string, string> {
  const stages = new Map<string, string>();
  let block = 0;
  for (const { opType, output } of nodes) {
    const stage = STAGES[block];
    if (stage !== undefined) for (const name of output) stages.set(name, stage);
    if (opType === 'Add') block++;
  }
  if (block !== STAGES.length) throw new Error(`the network has ${block} blocks, a U²-Net ${STAGES.length}`);
  return stages;
}

/** The network as convolutions and additions; their inputs are traced back through all other nodes to measured tensors. */
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
  const heads: string[] = [];
  const mixing: string[] = [];
  const known = (name: string) => segments.get(name) ?? [];
  for (const { opType, name, input, output } of graph.node) {
    const [first = '', second = '', third = ''] = input;
    const [result = ''] = output;
    if (opType === 'Conv') {
      const weight = initializers.get(second);
      const shift = initializers.get(third);
      if (!weight || !shift) throw new Error(`${name} has no constant weights and bias`);
      const [outputs = 0, inputs = 0] = weight.dims.map(Number);
      const reads = known(first);
      if (reads.length > 0 && reads.every(({ source }) => heads.includes(source))) {
        mixing.push(name);
        continue;
      }
      const weights = floats(weight);
      const makes = afterRelu.get(result) ?? result;
      const taps = weights.length / outputs / inputs;
      convolutions.push({
        name,
        reads,
        makes,
        outputs,
        inputs,
        taps,
        weights,
        bias: floats(shift),
      });
      segments.set(makes, [{ source: makes, channels: outputs, enlarged: 0 }]);
      if (outputs === 1) heads.push(makes);
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
  const sum = additions[STAGES.indexOf('stage6')];
  const deepest = convolutions.filter(
    ({ makes, reads }) =>
      makes === sum?.left ||
      makes === sum?.right ||
      reads.some(({ source, enlarged }) => source === sum?.makes && enlarged > 0),
  );
  const stages = stagesOf(graph.node);
  return {
    convolutions,
    additions,
    heads: heads.map((tensor) => ({ tensor, alone: mixing.length === 0 })),
    mixing,
    deepest: deepest.map(({ name }) => name),
    stageOf: (tensor) => stages.get(tensor),
    onlyEnlarged,
  };
}
