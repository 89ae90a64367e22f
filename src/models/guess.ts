import {
  allNodes,
  attribute,
  constants,
  elementType,
  FLOAT,
  FLOAT16,
  floatValues,
  onlyConsumerOf,
  producersOf,
  shapeOf,
} from '../compiler/onnx/graph.ts';
import type {
  GraphProto,
  ModelProto,
  NodeProto,
  TensorProto,
  ValueInfoProto,
} from '../compiler/onnx/onnx_pb.ts';
import { hasHalf } from '../compiler/onnx/widen.ts';
import { ModelError, unsupported } from './error.ts';

/** What an ONNX file of unknown origin is, as far as its graph tells. */

/** Values that a network expects, as mean and standard deviation of a channel's value in 0..255. */
export const NORMALISATIONS = {
  /** Mean and deviation of the photos of ImageNet. */
  imagenet: { mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, 57.375] },
  /** -1 to 1. */
  signed: { mean: [127.5, 127.5, 127.5], std: [127.5, 127.5, 127.5] },
  /** -0.5 to 0.5. */
  centred: { mean: [127.5, 127.5, 127.5], std: [255, 255, 255] },
  /** 0 to 1. */
  unit: { mean: [0, 0, 0], std: [255, 255, 255] },
  /** 0 to 255. */
  bytes: { mean: [0, 0, 0], std: [1, 1, 1] },
} as const;

export type Normalisation = keyof typeof NORMALISATIONS;

export interface Guess<T> {
  readonly value: T;
  /** Whether the graph leaves no doubt. */
  readonly sure: boolean;
  /** The reason, as a part of a sentence. */
  readonly because: string;
}

export interface Guesses {
  readonly size: Guess<{ readonly width: number; readonly height: number }>;
  readonly normalisation: Guess<Normalisation>;
  /** `undefined`: only a run tells. */
  readonly output: Guess<'probability' | 'logit' | undefined>;
  readonly precision: 'fp32' | 'fp16';
}

/** Domains of operators that ONNX Runtime has, as far as preparation knows them. */
const DOMAINS = new Set(['', 'ai.onnx', 'com.microsoft']);

const notRunnable = (what: string) => unsupported(`The network ${what}.`);

/** Lengths of the dimensions; undefined for a free one, or without a declared shape for all. */
const dims = (value: ValueInfoProto) =>
  shapeOf(value)?.map((dim) => (dim.value.case === 'dimValue' ? Number(dim.value.value) : undefined));

const written = (shape: readonly (number | undefined)[]) => `[${shape.map((dim) => dim ?? '?').join(', ')}]`;

/** Returns the one input that is the image. Throws ModelError for other inputs than the engine gives. */
function imageInput(graph: GraphProto): { input: ValueInfoProto; height?: number; width?: number } {
  const given = new Set(graph.initializer.map(({ name }) => name));
  const inputs = graph.input.filter(({ name }) => !given.has(name));
  const [input] = inputs;
  if (!input || inputs.length > 1) {
    throw notRunnable(`has ${inputs.length} inputs; one is needed, the image [1, 3, height, width]`);
  }
  const type = elementType(input);
  if (type !== FLOAT && type !== FLOAT16) {
    throw notRunnable('has an input that is not of floats (float32 or float16)');
  }
  const shape = dims(input);
  if (!shape) return { input };
  const [batch, channels, height, width] = shape;
  if (shape.length !== 4 || (batch ?? 1) !== 1 || (channels ?? 3) !== 3) {
    const last =
      shape.length === 4 && shape[3] === 3 ? ': images with the channels last are not supported' : '';
    throw notRunnable(`has an input of shape ${written(shape)}, [1, 3, height, width] is needed${last}`);
  }
  return { input, ...(height !== undefined && { height }), ...(width !== undefined && { width }) };
}

/** Throws ModelError where output 0 is declared as anything but one map. */
function checkOutput(graph: GraphProto): void {
  const [output] = graph.output;
  if (!output) throw notRunnable('has no output');
  const shape = dims(output);
  const leading = shape?.slice(0, -2) ?? [];
  if (shape && (shape.length < 2 || leading.some((dim) => (dim ?? 1) !== 1))) {
    throw notRunnable(
      `gives an output 0 of shape ${written(shape)}, one map [1, 1, height, width] is needed`,
    );
  }
}

/** Returns the size of networks of these kinds where the file leaves it free. */
function usualSize(kinds: ReadonlySet<string>): number {
  return kinds.has('InstanceNormalization') ? 512 : 1024;
}

/** Returns what the network does with the image before its first layer: the numbers that it subtracts and divides by. */
function ownNormalisation(graph: GraphProto, input: string): Normalisation | undefined {
  const known = constants(graph);
  const consumer = onlyConsumerOf(graph);
  const numbersOf = (node: NodeProto): number[] => {
    const tensor = node.input.map((name) => known.get(name)).find(Boolean);
    return [...(floatValues(tensor)?.slice(0, 3) ?? [])];
  };
  let node = consumer(input);
  for (let steps = 0; node && steps < 8; steps++) {
    const numbers = numbersOf(node);
    const all = (from: number, to: number) =>
      numbers.length > 0 && numbers.every((each) => Math.abs(each) >= from && Math.abs(each) <= to);
    if (node.opType === 'Div' && all(200, 300)) return 'bytes';
    if (node.opType === 'Mul' && all(1 / 300, 1 / 200)) return 'bytes';
    if ((node.opType === 'Sub' || node.opType === 'Add') && all(90, 140)) return 'bytes';
    if ((node.opType === 'Sub' || node.opType === 'Add') && all(0.3, 0.6)) return 'unit';
    if (!['Cast', 'Identity', 'Sub', 'Add', 'Mul', 'Div', 'Transpose'].includes(node.opType))
      return undefined;
    node = consumer(node.output[0] ?? '');
  }
  return undefined;
}

function guessNormalisation(
  graph: GraphProto,
  input: string,
  kinds: ReadonlySet<string>,
  side: number,
): Guess<Normalisation> {
  const own = ownNormalisation(graph, input);
  if (own) return { value: own, sure: true, because: 'the graph itself normalises the image' };
  if (kinds.has('DeformConv')) {
    return { value: 'imagenet', sure: true, because: 'it has deformable convolutions, as BiRefNet' };
  }
  if (kinds.has('LayerNormalization') || kinds.has('Softmax')) {
    return { value: 'imagenet', sure: false, because: 'it has a transformer' };
  }
  if (kinds.has('InstanceNormalization')) {
    return { value: 'signed', sure: false, because: 'it has instance normalisation, as MODNet' };
  }
  const nested = kinds.has('MaxPool') && kinds.has('Concat') && kinds.has('Resize');
  if (nested && side === 320) return { value: 'imagenet', sure: true, because: 'it is built as U²-Net' };
  if (nested && side === 1024) return { value: 'centred', sure: false, because: 'it is built as IS-Net' };
  return { value: 'imagenet', sure: false, because: 'most networks want it' };
}

/** Operators that move or convert values without changing them (Resize: without leaving their range). */
const MOVES = new Set([
  ...['Identity', 'Cast', 'Reshape', 'Squeeze', 'Unsqueeze', 'Flatten', 'Transpose', 'Slice', 'Gather'],
  ...['Resize', 'Upsample', 'Split'],
]);
const SIGMOIDS = new Set(['Sigmoid', 'HardSigmoid', 'Softmax']);
const UNBOUNDED = new Set([
  ...['Conv', 'ConvTranspose', 'DeformConv', 'Gemm', 'MatMul', 'BatchNormalization', 'Add'],
]);

function guessOutput(graph: GraphProto): Guesses['output'] {
  const producers = producersOf(graph);
  const known = constants(graph);
  let node = producers.get(graph.output[0]?.name ?? '');
  // A graph that is damaged may have a cycle.
  for (let steps = 0; node && MOVES.has(node.opType) && steps < 100; steps++) {
    node = producers.get(node.input[0] ?? '');
  }
  if (!node) return { value: undefined, sure: false, because: 'nothing computes its output' };
  const because = `it ends in ${node.opType}`;
  if (SIGMOIDS.has(node.opType)) return { value: 'probability', sure: true, because };
  if (node.opType === 'Clip' && clipsToUnit(node, known))
    return { value: 'probability', sure: true, because };
  if (UNBOUNDED.has(node.opType)) return { value: 'logit', sure: true, because };
  return { value: undefined, sure: false, because };
}

function clipsToUnit(node: NodeProto, known: ReadonlyMap<string, TensorProto>): boolean {
  const bound = (at: 1 | 2, name: string) =>
    floatValues(known.get(node.input[at] ?? ''))?.[0] ?? attribute(node, name)?.f;
  return bound(1, 'min') === 0 && bound(2, 'max') === 1;
}

/**
 * Guesses what a manifest says of a network. Throws ModelError `MODEL_UNSUPPORTED` for a network that the engine
 * cannot run.
 */
export function guess({ graph }: ModelProto): Guesses {
  if (!graph || graph.node.length === 0) {
    throw new ModelError(
      'MODEL_DAMAGED',
      'The file is not an ONNX file, or not a complete one: it has no graph.',
    );
  }
  const nodes = [...allNodes(graph)];
  const foreign = nodes.find(({ domain }) => !DOMAINS.has(domain));
  if (foreign) {
    throw notRunnable(
      `has the operator ${foreign.opType} of ${foreign.domain}, which ONNX Runtime does not have`,
    );
  }
  const { input, height, width } = imageInput(graph);
  checkOutput(graph);
  const kinds = new Set(nodes.map(({ opType }) => opType));
  const usual = usualSize(kinds);
  const declared = height !== undefined && width !== undefined;
  const size = { width: width ?? usual, height: height ?? usual };
  return {
    size: {
      value: size,
      sure: declared,
      because: declared ? 'the file declares it' : 'the file leaves it free',
    },
    normalisation: guessNormalisation(graph, input.name, kinds, Math.max(size.width, size.height)),
    output: guessOutput(graph),
    precision: hasHalf(graph) ? 'fp16' : 'fp32',
  };
}
