import { attribute } from '../onnx/graph.ts';
import type { GraphProto, ModelProto, NodeProto } from '../onnx/onnx_pb.ts';
import { convGeometry, enlargementOf, Unsupported, windowOf } from './geometry.ts';
import { importOperators } from './operator.ts';
import { LANES, packBf16 } from './pack.ts';
import { type FloatsOf, GraphPartition } from './partition.ts';
import type { ProgramWriter, ValueSpec } from './program.ts';

/** Channels of an image, and those that are read: a kernel reads two at a time, and an even number of pairs is faster. */
const IMAGE = { channels: 3, read: 4 };

const wholeGroups = (channels: number) => Math.ceil(channels / LANES) * LANES;

/** A tensor of the network in the program: the first `channels` of a value. */
interface Source {
  readonly value: number;
  readonly channels: number;
}

/** The convolutional part of a float network as one program in bf16, and what of its graph is left behind it. */
class Converter {
  readonly #partition: GraphPartition;
  readonly #program: ProgramWriter;
  readonly #sources = new Map<string, Source>();

  constructor(graph: GraphProto, floatsOf: FloatsOf) {
    this.#partition = new GraphPartition(graph, floatsOf, IMAGE.channels);
    this.#program = this.#partition.program;
  }

  run(): void {
    const value = this.#program.input({ type: 'bf16', channels: IMAGE.read, zero: 0 });
    this.#sources.set(this.#partition.input, { value, channels: IMAGE.channels });
    for (const node of this.#partition.nodes) {
      if (!(node.domain === '' && this.#node(node))) this.#keep(node);
    }
    for (const name of this.#partition.outputs) this.#outside(name);
    if (this.#program.outputs === 0) throw new Unsupported('it has no convolutions');
    this.#partition.replaceNodes('Bf16Network');
  }

  /** A map of bf16, all of whose channels are the network's. */
  #map(name: string): Source | undefined {
    const source = this.#sources.get(name);
    const spec = source && this.#program.spec(source.value);
    return spec?.type === 'bf16' && spec.channels === source?.channels ? source : undefined;
  }

  #node(node: NodeProto): boolean {
    const [first = '', second = ''] = node.input;
    const [to = ''] = node.output;
    const a = this.#map(first);
    const set = (value: number, channels = a?.channels ?? 0) => {
      this.#sources.set(to, { value, channels });
      return true;
    };
    switch (node.opType) {
      case 'Conv':
        return this.#conv(node);
      case 'Relu': {
        const source = this.#sources.get(first);
        // Joined with the convolution before it.
        if (source && this.#relu(first) === node) return set(source.value, source.channels);
        return a !== undefined && set(this.#program.combine([a.value], this.#program.spec(a.value), true));
      }
      case 'MaxPool':
        return a !== undefined && set(this.#program.maxPool(a.value, ...windowOf(node)));
      case 'Resize': {
        if (!a) return false;
        const factor = enlargementOf(node, this.#partition.floats(node.input[2]));
        return set(this.#program.resize(a.value, factor));
      }
      case 'Add': {
        const b = this.#map(second);
        if (!a || !b || a.channels !== b.channels) return false;
        return set(this.#program.combine([a.value, b.value], this.#program.spec(a.value), false));
      }
      case 'Concat': {
        const parts = node.input.map((name) => this.#map(name));
        const values = parts.flatMap((part) => (part ? [part.value] : []));
        if (attribute(node, 'axis')?.i !== 1n || values.length < parts.length) return false;
        return set(
          this.#program.concat(values),
          parts.reduce((sum, part) => sum + (part?.channels ?? 0), 0),
        );
      }
      default:
        return false;
    }
  }

  /** The ReLU that is all that reads the output of a convolution. */
  #relu(name: string): NodeProto | undefined {
    return this.#convolved.has(name) ? this.#partition.reluAfter(name) : undefined;
  }
  readonly #convolved = new Set<string>();

  /** A convolution; one of few outputs, as the last ones of a network are, gives floats. */
  #conv(node: NodeProto): boolean {
    const [from = '', weightName, biasName] = node.input;
    const [to = ''] = node.output;
    const source = this.#sources.get(from);
    if (!source) return false;
    const read = this.#program.spec(source.value);
    const tensor = this.#partition.initializer(weightName);
    const geometry = convGeometry(node, tensor.dims);
    const { outputs, channels, kernel } = geometry;
    if (read.type !== 'bf16' || channels !== source.channels || read.channels % 2 !== 0) return false;
    const given = biasName ? this.#partition.floats(biasName) : new Float32Array(0);
    const made = wholeGroups(outputs);
    const bias = new Float32Array(made);
    bias.set(given);
    const taps = kernel[0] * kernel[1];
    const weights = padded(
      this.#partition.floats(weightName),
      [outputs, channels * taps],
      [made, read.channels * taps],
    );
    const spec: ValueSpec = { type: made === outputs ? 'bf16' : 'floats', channels: made, zero: 0 };
    this.#convolved.add(to);
    const value = this.#program.bf16Conv(source.value, spec, {
      ...geometry,
      channel: 0,
      channels: read.channels,
      relu: this.#relu(to) !== undefined,
      weights: packBf16(weights, made, read.channels, geometry),
      bias,
    });
    this.#sources.set(to, { value, channels: outputs });
    return true;
  }

  /** A node that stays outside. A large convolution would take longer there than all that is gained. */
  #keep(node: NodeProto): void {
    const outputs = node.opType === 'Conv' ? this.#partition.initializer(node.input[1]).dims[0] : undefined;
    if (outputs !== undefined && outputs >= LANES) {
      throw new Unsupported(`${node.name} reads what is not computed in bf16`);
    }
    for (const name of node.input) this.#outside(name);
    this.#partition.keep(node);
  }

  /** Makes sure that a tensor exists outside the program. */
  #outside(name: string): void {
    const source = this.#sources.get(name);
    if (!source || this.#partition.hasProgramOutput(name) || name === this.#partition.input) return;
    this.#partition.addProgramOutput(name, this.#program.planes(source.value, source.channels));
  }
}

/** A matrix with rows and columns of zeros behind its own. */
function padded(
  values: Float32Array,
  [rows, columns]: readonly [number, number],
  [allRows, allColumns]: readonly [number, number],
): Float32Array {
  if (rows === allRows && columns === allColumns) return values;
  const all = new Float32Array(allRows * allColumns);
  for (let row = 0; row < rows; row++) {
    all.set(values.subarray(row * columns, (row + 1) * columns), row * allColumns);
  }
  return all;
}

/**
 * Makes the convolutional part of a float network one node of the operator `Bf16Network` (native/low_precision). Changes
 * `model`. Throws a RangeError, and leaves the model as it is, where the network has something in that part that the
 * operator does not know.
 * @param floats the numbers of a tensor of floats, however they are stored
 */
export function asBf16Network(model: ModelProto, floats: FloatsOf): void {
  const { graph } = model;
  if (!graph) throw new RangeError('the file has no graph');
  new Converter(graph, floats).run();
  importOperators(model);
}
