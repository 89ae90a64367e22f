import { attribute, constants, floatValues, int64Values, producersOf } from './graph.ts';
import type { GraphProto, NodeProto } from './onnx_pb.ts';

/**
 * What makes a tensor. A text stands for any tensor: for the same one, or an equal constant, wherever it occurs. `*` stands for
 * any at all, and numbers for a constant of exactly these values.
 */
export type Pattern =
  | string
  | readonly number[]
  | {
      readonly opType: string;
      /** The first inputs, in this order; all inputs of Add, Mul and Sum, in any order. */
      readonly inputs: readonly Pattern[];
      /** Integers that its attributes must have. */
      readonly settings?: Readonly<Record<string, readonly number[]>>;
      /** A text that stands for what it makes. */
      readonly as?: string;
    };

/** The tensors that the texts of a pattern stand for. */
export type Found = ReadonlyMap<string, string>;

const commutative = new Set(['Add', 'Mul', 'Sum']);

/** The integers of an attribute, which may be a single one; undefined if it is absent. */
function integers(node: NodeProto, name: string): readonly number[] | undefined {
  const found = attribute(node, name);
  return found && (found.ints.length > 0 ? found.ints : [found.i]).map(Number);
}

/** Finds patterns in a graph, which must not be changed meanwhile. */
export class Matcher {
  readonly #producers;
  readonly #constants;

  constructor(graph: GraphProto) {
    this.#producers = producersOf(graph);
    this.#constants = constants(graph);
  }

  /** Values of a constant of integers or 32-bit floats; undefined for any other tensor. */
  values(tensor: string | undefined): readonly number[] | undefined {
    const constant = this.#constants.get(tensor ?? '');
    const found = constant && (int64Values(constant) ?? floatValues(constant));
    return found && Array.from(found, Number);
  }

  /** Returns the node that makes a tensor. */
  producer(tensor: string | undefined): NodeProto | undefined {
    return this.#producers.get(tensor ?? '');
  }

  /** Returns the dimensions of a constant. */
  dims(tensor: string | undefined): readonly number[] | undefined {
    return this.#constants.get(tensor ?? '')?.dims.map(Number);
  }

  /** Returns the tensors that the texts of a pattern stand for; undefined if `tensor` is not made as it says. */
  find(tensor: string | undefined, pattern: Pattern): Found | undefined {
    for (const found of this.#all(tensor, pattern, new Map())) return found;
    return undefined;
  }

  /** Exporters write the same constant many times. */
  #equal(one: string, other: string): boolean {
    const values = this.values(one);
    return values !== undefined && `${values}` === `${this.values(other)}`;
  }

  *#all(tensor: string | undefined, pattern: Pattern, found: Found): Generator<Found> {
    if (tensor === undefined) return;
    if (typeof pattern === 'string') {
      const known = pattern === '*' ? tensor : found.get(pattern);
      if (known === undefined) yield new Map(found).set(pattern, tensor);
      else if (known === tensor || this.#equal(known, tensor)) yield found;
    } else if ('opType' in pattern) {
      yield* this.#made(tensor, pattern, found);
    } else if (`${this.values(tensor)}` === `${pattern}`) {
      yield found;
    }
  }

  *#made(tensor: string, pattern: Exclude<Pattern, string | readonly number[]>, found: Found) {
    const { opType, inputs, settings = {}, as = '*' } = pattern;
    const node = this.#producers.get(tensor);
    if (node?.opType !== opType || node.domain !== '') return;
    const agrees = ([name, wanted]: [string, readonly number[]]) => `${integers(node, name)}` === `${wanted}`;
    if (!Object.entries(settings).every(agrees)) return;
    for (const named of this.#all(tensor, as, found))
      yield* commutative.has(opType)
        ? this.#anyOrder(node.input, inputs, named)
        : this.#inOrder(node.input, inputs, named);
  }

  *#inOrder(tensors: readonly string[], patterns: readonly Pattern[], found: Found): Generator<Found> {
    const [first, ...rest] = patterns;
    if (first === undefined) return void (yield found);
    for (const now of this.#all(tensors[0], first, found)) yield* this.#inOrder(tensors.slice(1), rest, now);
  }

  *#anyOrder(tensors: readonly string[], patterns: readonly Pattern[], found: Found): Generator<Found> {
    const [first, ...rest] = patterns;
    if (first === undefined) return void (tensors.length === 0 && (yield found));
    for (const [at, tensor] of tensors.entries())
      for (const now of this.#all(tensor, first, found))
        yield* this.#anyOrder(tensors.toSpliced(at, 1), rest, now);
  }
}
