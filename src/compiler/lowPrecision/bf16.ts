import { attribute, subgraphs } from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto } from '../onnx/onnx_pb.ts';
import { convGeometry, enlargementOf, Unsupported, windowOf } from './geometry.ts';
import { LANES, packSixteen, padded, type Sixteen, wholeGroups } from './pack.ts';
import { GraphPartition } from './partition.ts';
import type { ProgramWriter, ValueSpec } from './program.ts';

/** Channels of an image, and those that are read: a kernel reads two at a time, and an even number of pairs is faster. */
const IMAGE = { channels: 3, read: 4 };

/** A tensor of the network in the program: the first `channels` of a value. */
interface Source {
  readonly value: number;
  readonly channels: number;
}

/** Turns the convolutional part of a float network into one program of 16 bits, and leaves the rest around it. */
class Bf16NetworkConverter {
  readonly #partition: GraphPartition;
  readonly #program: ProgramWriter;
  readonly #format: Sixteen;
  readonly #sources = new Map<string, Source>();
  /** Nodes outside the program that nothing has asked for yet, by their outputs. */
  readonly #waiting = new Map<string, NodeProto>();
  /** Outputs of convolutions, which a ReLU can be part of. */
  readonly #convolved = new Set<string>();

  constructor(graph: GraphProto, floatsOf: FloatsOf, format: Sixteen) {
    this.#partition = new GraphPartition(graph, floatsOf, IMAGE.channels);
    this.#program = this.#partition.program;
    this.#format = format;
  }

  /** Returns the program. */
  run(): ProgramWriter {
    const value = this.#program.input({ type: 'bf16', channels: IMAGE.read, zero: 0 });
    this.#sources.set(this.#partition.input, { value, channels: IMAGE.channels });
    for (const node of this.#partition.nodes) {
      if (node.domain === '' && this.#node(node)) continue;
      if (subgraphs(node).length > 0) throw new Unsupported(`${node.name} has a graph of its own`);
      for (const name of node.output) this.#waiting.set(name, node);
    }
    for (const name of this.#partition.outputs) this.#outside(name);
    return this.#partition.replaceNodes('Bf16Network');
  }

  /** Returns a map of bf16 all of whose channels are the network's. */
  #map(name: string): Source | undefined {
    const source = this.#sources.get(name);
    const spec = source && this.#program.spec(source.value);
    return spec?.type === 'bf16' && spec.channels === source?.channels ? source : undefined;
  }

  /** Adds a node to the program. Returns false where it stays outside. */
  #node(node: NodeProto): boolean {
    const [first = '', second = ''] = node.input;
    const [to = ''] = node.output;
    if (node.opType === 'Conv') return this.#conv(node);
    const source = this.#sources.get(first);
    const set = (made: Source) => {
      this.#sources.set(to, made);
      return true;
    };
    // Joined with the convolution before it.
    if (node.opType === 'Relu' && source && this.#reluOf(first) === node) return set(source);
    const a = this.#map(first);
    if (!a) return false;
    const spec = this.#program.spec(a.value);
    switch (node.opType) {
      case 'Relu':
        return set({ ...a, value: this.#program.combine([a.value], spec, true) });
      case 'MaxPool':
        return set({ ...a, value: this.#program.maxPool(a.value, ...windowOf(node)) });
      case 'Resize': {
        if (!this.#partition.findInitializer(node.input[2])) return false;
        const factor = enlargementOf(node, this.#partition.floats(node.input[2]));
        return set({ ...a, value: this.#program.resize(a.value, factor) });
      }
      case 'Add': {
        const b = this.#map(second);
        if (!b || a.channels !== b.channels) return false;
        return set({ ...a, value: this.#program.combine([a.value, b.value], spec, false) });
      }
      case 'Concat':
        return this.#concat(node);
      default:
        return false;
    }
  }

  /** Returns the ReLU that is all that reads the output of a convolution. */
  #reluOf(name: string): NodeProto | undefined {
    return this.#convolved.has(name) ? this.#partition.reluAfter(name) : undefined;
  }

  #concat(node: NodeProto): boolean {
    const parts = node.input.flatMap((name) => this.#map(name) ?? []);
    if (attribute(node, 'axis')?.i !== 1n || parts.length < node.input.length) return false;
    const value = this.#program.concat(parts.map((part) => part.value));
    const channels = parts.reduce((sum, part) => sum + part.channels, 0);
    this.#sources.set(node.output[0] ?? '', { value, channels });
    return true;
  }

  /** Adds a convolution; one of few outputs, as the last ones of a network are, gives floats. */
  #conv(node: NodeProto): boolean {
    const [from = '', weightName, biasName] = node.input;
    const [to = ''] = node.output;
    const a = this.#sources.get(from);
    const tensor = this.#partition.findInitializer(weightName ?? '');
    if (!a || !tensor) return false;
    const geometry = convGeometry(node, tensor.dims);
    const { outputs, channels, kernel } = geometry;
    const read = this.#program.spec(a.value);
    if (read.type !== 'bf16' || channels !== a.channels || read.channels % 2 !== 0) return false;
    const made = wholeGroups(outputs);
    const bias = new Float32Array(made);
    if (biasName) bias.set(this.#partition.floats(biasName));
    const taps = kernel[0] * kernel[1];
    const weights = padded(
      this.#partition.floats(weightName),
      [outputs, channels * taps],
      [made, read.channels * taps],
    );
    const spec: ValueSpec = { type: made === outputs ? 'bf16' : 'floats', channels: made, zero: 0 };
    this.#convolved.add(to);
    const value = this.#program.conv(a.value, spec, {
      ...{ ...geometry, channel: 0, channels: read.channels, panels: 1, bias },
      relu: this.#reluOf(to) !== undefined,
      weights: packSixteen(weights, made, read.channels, geometry, this.#format),
    });
    this.#sources.set(to, { value, channels: outputs });
    return true;
  }

  /** Keeps a node outside. A large convolution would take longer there than all that is gained. */
  #keep(node: NodeProto): void {
    for (const name of node.output) this.#waiting.delete(name);
    const weights = node.opType === 'Conv' ? this.#partition.findInitializer(node.input[1] ?? '') : undefined;
    if (weights && (weights.dims[0] ?? 0n) >= BigInt(LANES)) {
      throw new Unsupported(`${node.name} reads what is not computed in bf16`);
    }
    for (const name of node.input) this.#outside(name);
    this.#partition.keep(node);
  }

  /** Makes sure that a tensor exists outside the program. */
  #outside(name: string): void {
    const node = this.#waiting.get(name);
    if (node) this.#keep(node);
    const source = this.#sources.get(name);
    if (!source || this.#partition.hasProgramOutput(name) || name === this.#partition.input) return;
    this.#partition.addProgramOutput(name, this.#program.planes(source.value, source.channels));
  }
}

/**
 * Makes the convolutional part of a float network one node of the operator `Bf16Network` (native/low_precision), and returns
 * its program with weights in this format. Throws a RangeError, and leaves the graph as it is, where the network has
 * something in that part that the operator does not know.
 */
export const makeSixteenBitNetwork = (graph: GraphProto, floats: FloatsOf, format: Sixteen): ProgramWriter =>
  new Bf16NetworkConverter(graph, floats, format).run();
