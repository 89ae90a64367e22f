import { constants, floatTensor, INT8, newNode, onlyConsumerOf, UINT8 } from './graph.ts';
import type { GraphProto, NodeProto, TensorProto } from './onnx_pb.ts';

/** One number, or one for each output channel. */
type Numbers = ArrayLike<number>;

const each = (values: Numbers, at: number): number =>
  (values.length === 1 ? values[0] : values[at]) ?? Number.NaN;

/** 8-bit numbers of a tensor; undefined for one of another type. */
function bytesOf({ dataType, rawData, int32Data }: TensorProto): Numbers | undefined {
  if (dataType !== INT8 && dataType !== UINT8) return undefined;
  if (rawData.length === 0) return int32Data;
  return dataType === UINT8 ? rawData : new Int8Array(rawData.buffer, rawData.byteOffset, rawData.length);
}

/** One convolution whose input is rounded to 8 bits in every run. */
interface Dynamic {
  readonly input: string;
  readonly weights: TensorProto;
  readonly scale: Numbers;
  readonly zero: Numbers;
  readonly bias: TensorProto;
  readonly output: string;
}

/** Recognises what ONNX Runtime's dynamic quantisation makes of a convolution. */
function dynamicOf(
  graph: GraphProto,
  convolution: NodeProto,
  floats: (tensor: TensorProto) => Float32Array,
): Dynamic | undefined {
  const known = constants(graph);
  const onlyConsumer = onlyConsumerOf(graph);
  const producer = (name: string) => graph.node.find(({ output }) => output.includes(name));
  const [from = '', weightName = '', , zeroName = ''] = convolution.input;
  const rounding = producer(from);
  const weights = known.get(weightName);
  const zeros = known.get(zeroName);
  if (rounding?.opType !== 'DynamicQuantizeLinear' || !weights || !zeros) return undefined;
  const cast = onlyConsumer(convolution.output[0] ?? '');
  const scaling = cast?.opType === 'Cast' ? onlyConsumer(cast.output[0] ?? '') : undefined;
  const sum = scaling?.opType === 'Mul' ? onlyConsumer(scaling.output[0] ?? '') : undefined;
  const factor = producer(scaling?.input.find((name) => name !== cast?.output[0]) ?? '');
  if (!cast || !scaling || sum?.opType !== 'Add' || factor?.opType !== 'Mul') return undefined;
  const scale = known.get(factor.input.find((name) => name !== rounding.output[1]) ?? '');
  const shaped = producer(sum.input.find((name) => name !== scaling.output[0]) ?? '');
  const bias = shaped?.opType === 'Reshape' ? known.get(shaped.input[0] ?? '') : undefined;
  const zero = bytesOf(zeros);
  const reads = factor.input.includes(rounding.output[1] ?? '');
  if (!scale || !bias || !zero || !shaped || !reads || bias.dims[0] !== weights.dims[0]) return undefined;
  return {
    input: rounding.input[0] ?? '',
    weights,
    scale: floats(scale),
    zero,
    bias,
    output: sum.output[0] ?? '',
  };
}

/**
 * Makes convolutions of floats again of those whose inputs ONNX Runtime's dynamic quantisation rounds to 8 bits in every
 * run. Their weights are the rounded ones, as floats.
 */
export function restoreConvolutions(graph: GraphProto, floats: (tensor: TensorProto) => Float32Array): void {
  for (const node of graph.node.filter(({ opType }) => opType === 'ConvInteger')) {
    const found = dynamicOf(graph, node, floats);
    const bytes = found && bytesOf(found.weights);
    if (!found || !bytes) continue;
    const outputs = Number(found.weights.dims[0] ?? 0n);
    const row = bytes.length / outputs;
    const values = new Float32Array(bytes.length);
    for (let i = 0; i < values.length; i++) {
      const channel = Math.floor(i / row);
      values[i] = (each(bytes, i) - each(found.zero, channel)) * each(found.scale, channel);
    }
    const weights = floatTensor(`${found.output}/weights`, found.weights.dims.map(Number), values);
    graph.initializer.push(weights);
    const { output } = found;
    const convolution = newNode('Conv', [found.input, weights.name, found.bias.name], [output]);
    convolution.attribute = node.attribute;
    const sum = graph.node.findIndex((other) => other.output[0] === output);
    graph.node[sum] = convolution;
  }
}
