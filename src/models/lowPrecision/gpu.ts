import { constants } from '../onnx/graph.ts';
import type { GraphProto } from '../onnx/onnx_pb.ts';
import { convolutionalProgram } from './bf16.ts';
import { samplingOf, Unsupported } from './geometry.ts';
import type { FloatsOf } from './partition.ts';

/** At the beginning of a file, with the version of its format. */
const MAGIC = 'CUTOUTG1';
const ALIGNMENT = 8;

const aligned = (bytes: Uint8Array): Uint8Array[] => [
  bytes,
  new Uint8Array((ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT),
];

/** By how much the nodes behind the program enlarge its output, the last of which has to be a sigmoid. */
function enlargementBehind(graph: GraphProto, floats: FloatsOf): number {
  const [program, ...behind] = graph.node;
  const known = constants(graph);
  let [name = ''] = program?.output ?? [];
  let factor = 1;
  let isProbability = false;
  for (const node of behind) {
    if (node.input[0] !== name || isProbability) throw new Unsupported(`${node.name} is no step behind it`);
    const scales = known.get(node.input[2] ?? '');
    if (node.opType === 'Sigmoid') isProbability = true;
    else if (node.opType === 'Resize' && scales && factor === 1) {
      const sampling = samplingOf(node, floats(scales));
      if (sampling.grid !== 'centres') throw new Unsupported(`${node.name} samples otherwise`);
      factor = sampling.factor;
    } else throw new Unsupported(`${node.name} is no step behind it`);
    name = node.output[0] ?? '';
  }
  if (
    program?.output.length !== 1 ||
    !isProbability ||
    graph.output.length !== 1 ||
    graph.output[0]?.name !== name
  )
    throw new Unsupported('its only output is no sigmoid');
  return factor;
}

/**
 * The file that pipeline/gpu_network.cc reads: a network of convolutions with weights in float16, whose output are the
 * logits of one plane. Changes `graph`. Throws a RangeError where the network has something else.
 * @param floats the numbers of a tensor of floats, however they are stored
 */
export function gpuProgram(graph: GraphProto, floats: FloatsOf): Uint8Array[] {
  const program = convolutionalProgram(graph, floats, 'fp16');
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
