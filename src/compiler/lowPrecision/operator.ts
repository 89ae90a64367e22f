import { create } from '@bufbuild/protobuf';
import { newNode, rawTensor } from '../onnx/build.ts';
import { FLOAT, INT8, INT32, INT64 } from '../onnx/graph.ts';
import {
  type GraphProto,
  type ModelProto,
  type NodeProto,
  OperatorSetIdProtoSchema,
} from '../onnx/onnx_pb.ts';
import type { ProgramWriter } from './program.ts';

/** The domain of Cutout's operators (native/ort/custom_operators.h). */
export const OPERATORS_DOMAIN = 'cutout';
/** Name of the operations in prepared files, whose bytes do not change: the list was once called steps. */
const CODE = 'steps';

export type Operator = 'IntegerNetwork' | 'Bf16Network';

/** Returns a node that runs a program on a tensor, and adds its constants to the graph. */
export function operatorNode(
  graph: GraphProto,
  operator: Operator,
  program: ProgramWriter,
  input: string,
  outputs: string[],
): NodeProto {
  const { floats, ints, weights } = program;
  const code = program.code();
  const constant = (name: string, type: number, length: number, bytes: Uint8Array) => {
    graph.initializer.push(rawTensor(`integer/${name}`, type, [length], bytes));
    return `integer/${name}`;
  };
  const inputs = [
    input,
    constant(CODE, INT64, code.length, new Uint8Array(code.buffer)),
    constant('scales', FLOAT, floats.length, floats.bytes()),
    constant('biases', INT32, ints.length, ints.bytes()),
    constant('weights', INT8, weights.length, weights.bytes()),
  ];
  return Object.assign(newNode(operator, inputs, outputs), { domain: OPERATORS_DOMAIN });
}

/** Declares that a network uses Cutout's operators. */
export function importOperators(model: ModelProto): void {
  model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain: OPERATORS_DOMAIN, version: 1n }));
}
