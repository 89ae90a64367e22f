import { attribute } from '../onnx/graph.ts';
import type { NodeProto } from '../onnx/onnx_pb.ts';
import type { GraphPartition } from './partition.ts';

/** The channels that a Slice takes, all others being left; undefined for any other Slice. */
function channelsOf(partition: GraphPartition, node: NodeProto): [from: number, to: number] | undefined {
  const [starts, ends, axes, steps = [1]] = node.input.slice(1).map((name) => partition.integers(name));
  const [[from] = [], [to] = [], [axis] = [], [step] = []] = [starts, ends, axes, steps];
  return axis === 1 && step === 1 && from !== undefined && to !== undefined ? [from, to] : undefined;
}

/**
 * IBNorm: normalisation of a map's channels, the first half by constants (batch normalisation), the second by their
 * statistics in the map (instance normalisation).
 */
export interface IbNorm {
  /** Channels of the first half. */
  readonly first: number;
  readonly constant: NodeProto;
  readonly statistical: NodeProto;
  /** The nodes that are computed, the last one giving the result. */
  readonly nodes: readonly NodeProto[];
  readonly output: string;
}

/**
 * The nodes with which a map of `channels` channels is sliced in two, normalised and joined again, as MODNet does behind
 * its convolutions; undefined where it is read by anything else.
 */
export function findIbNorm(partition: GraphPartition, name: string, channels: number): IbNorm | undefined {
  const slices = partition.consumers(name);
  if (slices.length !== 2 || partition.outputs.has(name)) return undefined;
  if (slices.some(({ opType }) => opType !== 'Slice')) return undefined;
  const [[a, b], ranges] = [slices, slices.map((node) => channelsOf(partition, node))];
  const first = ranges[0]?.[1];
  if (!a || !b || first === undefined || ranges[0]?.[0] !== 0 || ranges[1]?.[0] !== first) return undefined;
  if ((ranges[1]?.[1] ?? 0) < channels) return undefined;
  const constant = partition.onlyConsumer(a.output[0] ?? '');
  const statistical = partition.onlyConsumer(b.output[0] ?? '');
  if (constant?.opType !== 'BatchNormalization' || statistical?.opType !== 'InstanceNormalization')
    return undefined;
  const joined = partition.onlyConsumer(constant.output[0] ?? '');
  const parts = [constant.output[0], statistical.output[0]];
  const joins =
    joined?.opType === 'Concat' &&
    attribute(joined, 'axis')?.i === 1n &&
    joined.input.length === 2 &&
    joined.input.every((input, at) => input === parts[at]) &&
    partition.onlyConsumer(parts[1] ?? '') === joined;
  if (!joins) return undefined;
  return {
    first,
    constant,
    statistical,
    nodes: [a, b, constant, statistical, joined],
    output: joined.output[0] ?? '',
  };
}
