import { newNode, rawTensor } from '../onnx/build.ts';
import { constants, FLOAT, INT8, INT32, INT64, OPERATORS_DOMAIN, onlyConsumerOf } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto, TensorProto } from '../onnx/onnx_pb.ts';
import { Unsupported } from './geometry.ts';
import { ProgramWriter } from './program.ts';

/**
 * A graph that is divided into a program, which one operator runs on the network's input, and the nodes that stay
 * outside it. The graph is left as it is until `replaceNodes`.
 */
export class GraphPartition {
  readonly #graph: GraphProto;
  readonly #floatsOf: FloatsOf;
  readonly #constants: ReadonlyMap<string, TensorProto>;
  readonly #onlyConsumer: (name: string) => NodeProto | undefined;
  /** Tensors that the program gives to the nodes outside, in the order of its outputs. */
  readonly #programOutputs = new Set<string>();
  readonly #outside: NodeProto[] = [];
  readonly program: ProgramWriter;
  /** Names of the network's input and of its outputs. */
  readonly input: string;
  readonly outputs: ReadonlySet<string>;

  /** Throws Unsupported for a graph without an input. */
  constructor(graph: GraphProto, floatsOf: FloatsOf, inputChannels: number) {
    const [input] = graph.input;
    if (!input) throw new Unsupported('it has no input');
    this.#graph = graph;
    this.#floatsOf = floatsOf;
    this.#constants = constants(graph);
    this.#onlyConsumer = onlyConsumerOf(graph);
    this.program = new ProgramWriter(inputChannels);
    this.input = input.name;
    this.outputs = new Set(graph.output.map(({ name }) => name));
  }

  get nodes(): readonly NodeProto[] {
    return this.#graph.node;
  }

  findInitializer(name: string | undefined): TensorProto | undefined {
    return this.#constants.get(name ?? '');
  }

  /** Returns a constant. Throws Unsupported if there is no such one. */
  initializer(name: string | undefined): TensorProto {
    const tensor = this.findInitializer(name);
    if (!tensor) throw new Unsupported(`${name} is no constant`);
    return tensor;
  }

  /** Returns the values of a float initializer. Throws Unsupported if there is no such initializer. */
  floats(name: string | undefined): Float32Array {
    return this.#floatsOf(this.initializer(name));
  }

  /** Returns the ReLU that alone reads a tensor: it is computed with what makes the tensor. */
  reluAfter(name: string): NodeProto | undefined {
    const next = this.#onlyConsumer(name);
    return next?.opType === 'Relu' ? next : undefined;
  }

  hasProgramOutput(name: string): boolean {
    return this.#programOutputs.has(name);
  }

  /** Records that the program's next output is the tensor `name`; `index` is what the ProgramWriter returned for it. */
  addProgramOutput(name: string, index: number): void {
    if (index !== this.#programOutputs.size) throw new RangeError(`output ${index} is not the next one`);
    this.#programOutputs.add(name);
  }

  /** Keeps a node outside the program. */
  keep(node: NodeProto): void {
    this.#outside.push(node);
  }

  /**
   * Replaces the graph's nodes by one that runs the program, which is returned, and the nodes that were kept. Throws
   * Unsupported for a program without outputs.
   */
  replaceNodes(operator: 'IntegerNetwork' | 'Bf16Network'): ProgramWriter {
    if (this.#programOutputs.size === 0)
      throw new Unsupported('it has no part that an operator of Cutout computes');
    const places = new Map(this.#graph.node.map((node, at) => [node, at]));
    this.#outside.sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
    const { floats, ints, weights } = this.program;
    const code = this.program.code();
    const constant = (name: string, type: number, length: number, bytes: Uint8Array) => {
      this.#graph.initializer.push(rawTensor(`integer/${name}`, type, [length], bytes));
      return `integer/${name}`;
    };
    const inputs = [
      this.input,
      // Prepared files keep their bytes: the list of operations was once called steps.
      constant('steps', INT64, code.length, new Uint8Array(code.buffer)),
      constant('scales', FLOAT, floats.length, floats.bytes()),
      constant('biases', INT32, ints.length, ints.bytes()),
      constant('weights', INT8, weights.length, weights.bytes()),
    ];
    const node = newNode(operator, inputs, [...this.#programOutputs]);
    this.#graph.node = [Object.assign(node, { domain: OPERATORS_DOMAIN }), ...this.#outside];
    return this.program;
  }
}
