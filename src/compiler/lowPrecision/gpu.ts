import { constants } from '../onnx/graph.ts';
import type { GraphProto } from '../onnx/onnx_pb.ts';
import { convolutionalProgram } from './bf16.ts';
import { enlargementOf, Unsupported } from './geometry.ts';
import type { FloatsOf } from './partition.ts';
import { convolutionOf, type ProgramOperation, type ProgramWriter } from './program.ts';

/** At the beginning of a file, with the version of its format. */
const MAGIC = 'CUTOUTG1';
const ALIGNMENT = 8;
/** native/pipeline/gpu_network.cc: kMostEnlargement. */
const MOST_ENLARGEMENT = 64;

const aligned = (bytes: Uint8Array): Uint8Array[] => [
  bytes,
  new Uint8Array((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT),
];

/** What native/cuda/network/ computes; gpu_network.cc checks the same. */
const KINDS: readonly ProgramOperation['kind'][] = [
  'input',
  'conv',
  'maxPool',
  'resize',
  'concat',
  'combine',
  'planes',
];
const MOST_TAPS = 32;
/** Channels that are computed together. */
const TOGETHER = 16;

/** Throws Unsupported for a program that these kernels cannot run. */
function checkOperations(program: ProgramWriter): void {
  const image = program.operations[0]?.output;
  for (const operation of program.operations) {
    const { kind, inputs, output } = operation;
    if (!KINDS.includes(kind)) throw new Unsupported(`the operation ${kind} runs on no GPU`);
    if (kind === 'combine' && inputs.length !== 2) throw new Unsupported('a sum of more than two maps');
    if (kind === 'planes' && operation !== program.operations.at(-1))
      throw new Unsupported('an output before the last operation');
    const readsImage = inputs.includes(image ?? -1);
    if (kind !== 'conv' && readsImage) throw new Unsupported('the image is read by no convolution');
    if (kind === 'conv') {
      const { channels, taps } = convolutionOf(operation);
      if (taps > MOST_TAPS) throw new Unsupported('a convolution of a larger window');
      if (!readsImage && channels % TOGETHER !== 0)
        throw new Unsupported(`a convolution of ${channels} channels`);
    }
    if (kind !== 'planes' && output !== image && program.spec(output).channels % TOGETHER !== 0)
      throw new Unsupported(`a map of ${program.spec(output).channels} channels`);
  }
}

/** By how much the nodes behind the program enlarge its output, the last of which has to be a sigmoid. */
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

/**
 * The file that native/pipeline/gpu_network.cc reads (its Head): a network of convolutions with weights in float16, whose
 * output is one plane of logits. Changes `graph`, also where it throws. Throws a RangeError where the network has
 * something else.
 * @param floats the numbers of a tensor of floats, however they are stored
 */
export function gpuProgram(graph: GraphProto, floats: FloatsOf): Uint8Array[] {
  const program = convolutionalProgram(graph, floats, 'fp16');
  checkOperations(program);
  const factor = enlargementBehind(graph, floats);
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
