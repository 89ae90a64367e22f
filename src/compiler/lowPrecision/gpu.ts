import { floatTensor } from '../onnx/build.ts';
import { constants, onlyConsumerOf, producersOf } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';
import { makeSixteenBitNetwork } from './bf16.ts';
import { enlargementOf, Unsupported } from './geometry.ts';
import { padded } from './pack.ts';
import type { ProgramWriter } from './program.ts';

/** At the beginning of a file, with the version of its format. */
const MAGIC = 'CUTOUTG1';
const ALIGNMENT = 8;
/** native/pipeline/gpu_network.cc: kMostEnlargement. */
const MOST_ENLARGEMENT = 64;

const aligned = (bytes: Uint8Array): Uint8Array[] => [
  bytes,
  new Uint8Array((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT),
];

/** Most taps of a convolution: cuda::kMostTaps. */
const MOST_TAPS = 32;
/** Channels that are computed together. */
const TOGETHER = 16;
const KINDS: readonly string[] = ['input', 'maxPool', 'resize', 'concat', 'conv', 'combine', 'planes'];

/**
 * Throws Unsupported for a program that the kernels of native/cuda/network/ cannot run: what `is_supported` of
 * native/pipeline/gpu_network.cc refuses (test/gpu/gpuNetwork.test.ts holds the two together).
 */
export function checkOperations(program: ProgramWriter): void {
  const image = program.operations[0]?.output ?? -1;
  const last = program.operations.at(-1);
  for (const operation of program.operations) {
    const { kind, inputs, output, rest } = operation;
    const refuse = (met: boolean, what: string) => {
      if (met) throw new Unsupported(what);
    };
    refuse(!KINDS.includes(kind), `the operation ${kind} runs on no GPU`);
    const readsImage = inputs.includes(image);
    refuse(readsImage && kind !== 'conv', 'the image is read by no convolution');
    if (kind === 'planes') {
      refuse(operation !== last, 'an output before the last operation');
      const isPlane = rest[0] === 1 && program.spec(inputs[0] ?? -1).type === 'floats';
      refuse(!isPlane, 'an output of more than one channel');
      continue;
    }
    const made = program.spec(output);
    refuse(output !== image && made.channels % TOGETHER !== 0, `a map of ${made.channels} channels`);
    refuse(kind === 'combine' && inputs.length !== 2, 'a sum of another number of maps than two');
    if (kind !== 'conv') continue;
    const [, channels = 0, height = 0, width = 0] = rest;
    refuse(height * width > MOST_TAPS, 'a convolution of a larger window');
    refuse(readsImage && made.type !== 'bf16', 'an output made of the image alone');
    refuse(!readsImage && channels % TOGETHER !== 0, `a convolution of ${channels} channels`);
  }
}

/**
 * Gives convolutions of one output that another convolution weights, as the last one of U²-Net does its six, further
 * outputs of zeros: a map has as many channels as are computed together.
 */
function widenPlanes(graph: GraphProto, floats: FloatsOf): void {
  const [tensors, producers, readerOf] = [constants(graph), producersOf(graph), onlyConsumerOf(graph)];
  const dimsOf = (node: NodeProto) => tensors.get(node.input[1] ?? '')?.dims.map(Number) ?? [];
  /** Replaces a constant, seen as a matrix, by one with zeros behind its rows or columns. */
  const pad = (node: NodeProto, input: number, dims: number[], rows: number, allRows: number) => {
    const tensor = tensors.get(node.input[input] ?? '');
    if (!tensor) return;
    const values = floats(tensor);
    const columns = dims.reduce((product, side) => product * side, 1) / allRows;
    const name = `${node.output[0]}/wide ${input}`;
    const all = padded(values, [rows, values.length / rows], [allRows, columns]);
    graph.initializer.push(floatTensor(name, dims, all));
    node.input[input] = name;
  };
  /** Returns the convolution of one output that a plane is made by, perhaps enlarged, for one reader. */
  const planeOf = (name: string): NodeProto | undefined => {
    const node = readerOf(name) && producers.get(name);
    if (node?.opType === 'Resize') return planeOf(node.input[0] ?? '');
    return node?.opType === 'Conv' && dimsOf(node)[0] === 1 ? node : undefined;
  };
  for (const join of graph.node.filter(({ opType }) => opType === 'Concat')) {
    const last = readerOf(join.output[0] ?? '');
    const planes = join.input.flatMap((name) => planeOf(name) ?? []);
    if (last?.opType !== 'Conv' || planes.length < join.input.length) continue;
    for (const node of planes) {
      pad(node, 1, [TOGETHER, ...dimsOf(node).slice(1)], 1, TOGETHER);
      pad(node, 2, [TOGETHER], 1, TOGETHER);
    }
    const [outputs = 0, read = 0, ...window] = dimsOf(last);
    pad(last, 1, [outputs, read * TOGETHER, ...window], outputs * read, outputs * read);
  }
}

/** Returns by how much the nodes behind the program enlarge its output, the last of which has to be a sigmoid. */
function enlargementBehind(graph: GraphProto, floats: FloatsOf): number {
  const [program, ...behind] = graph.node;
  const known = constants(graph);
  let [name = ''] = program?.output ?? [];
  let factor = 1;
  let isProbability = false;
  for (const node of behind) {
    if (node.input[0] !== name || isProbability)
      throw new Unsupported(`${node.name} may not follow the program`);
    const scales = known.get(node.input[2] ?? '');
    if (node.opType === 'Sigmoid') isProbability = true;
    else if (node.opType === 'Resize' && scales && factor === 1) {
      factor = enlargementOf(node, floats(scales));
      if (factor > MOST_ENLARGEMENT) throw new Unsupported(`${node.name} enlarges by ${factor}`);
    } else throw new Unsupported(`${node.name} may not follow the program`);
    name = node.output[0] ?? '';
  }
  if (
    program?.output.length !== 1 ||
    !isProbability ||
    graph.output.length !== 1 ||
    graph.output[0]?.name !== name
  )
    throw new Unsupported("the network's only output is no sigmoid");
  return factor;
}

/** Returns the file that native/pipeline/gpu_network.cc reads (its Head): `factor` enlarges what the program gives. */
export function gpuFile(program: ProgramWriter, factor: number): Uint8Array[] {
  const code = program.code();
  const counts = Uint32Array.of(code.length, program.floats.length, program.weights.length, factor);
  return [
    new TextEncoder().encode(MAGIC),
    new Uint8Array(counts.buffer),
    ...aligned(new Uint8Array(code.buffer)),
    ...aligned(program.floats.bytes()),
    ...aligned(program.weights.bytes()),
  ];
}

/**
 * Returns the program file of a network of convolutions with weights in float16, whose output is one plane of logits.
 * Changes `graph`, also where it throws. Throws a RangeError where the network has something else.
 */
export function gpuProgram(graph: GraphProto, floats: FloatsOf): Uint8Array[] {
  widenPlanes(graph, floats);
  const program = makeSixteenBitNetwork(graph, floats, 'fp16');
  checkOperations(program);
  return gpuFile(program, enlargementBehind(graph, floats));
}
