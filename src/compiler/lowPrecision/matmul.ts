import { transposed } from '../matrix.ts';
import { buildNode, rawTensor } from '../onnx/build.ts';
import {
  attribute,
  constants,
  consumersOf,
  FLOAT,
  INT8,
  intsOf,
  OPERATORS_DOMAIN,
  producersOf,
} from '../onnx/graph.ts';
import type { FloatsOf } from '../onnx/half.ts';
import type { GraphProto, NodeProto, TensorProto } from '../onnx/onnx_pb.ts';
import { Unsupported } from './geometry.ts';
import { LANES, type MatrixFormat, packMatrix } from './pack.ts';
import { Pool } from './program.ts';

/** Matrices with fewer rows or columns are left to ONNX Runtime: what they cost is not in the multiplications. */
const LEAST_INPUTS = 32;
const LEAST_COLUMNS = 16;

const MICROSOFT = 'com.microsoft';

/** Largest difference of a constant from the number that it stands for. */
const NEARLY = 1e-4;

/** A matmul of the rows of `from` with a constant matrix, and what follows it. */
interface MatMul {
  readonly from: string;
  readonly to: string;
  readonly inputs: number;
  readonly columns: number;
  /** The name of the constant matrix. */
  readonly weights: string;
  /** Whether it is stored as [columns, inputs]. */
  readonly turned: boolean;
  /** The name of the constant row, empty without one. */
  readonly bias: string;
  readonly gelu: boolean;
  /** Nodes that it replaces. */
  readonly nodes: readonly NodeProto[];
}

/** How the names of Cutout's operators begin. */
export const PREFIX: Readonly<Record<MatrixFormat, string>> = { bf16: 'Bf16', int8: 'Int8' };

/** Returns a node of an operator of Cutout. */
export const ownNode = (...[opType, inputs, output, settings]: Parameters<typeof buildNode>): NodeProto =>
  Object.assign(buildNode(opType, inputs, output, settings), { domain: OPERATORS_DOMAIN });

/**
 * Returns the size of a constant matrix that is worth an operator, and whether it is stored with its columns first;
 * `transposed`: a node transposes it first.
 */
function sizeOf(node: NodeProto, matrix: TensorProto | undefined, transposed = false) {
  const [rows = 0, across = 0, ...rest] = matrix?.dims.map(Number) ?? [];
  const turned = (node.opType === 'Gemm' && attribute(node, 'transB')?.i === 1n) !== transposed;
  const [inputs, columns] = turned ? [across, rows] : [rows, across];
  const large = inputs >= LEAST_INPUTS && columns >= LEAST_COLUMNS;
  return rest.length === 0 && large ? { inputs, columns, turned } : undefined;
}

/** Finds the matmuls of a network that can be computed in bf16 or 8 bits, and in bf16 its attentions, and replaces them. */
class MatMulsConverter {
  readonly #graph: GraphProto;
  readonly #floatsOf: FloatsOf;
  readonly #constants: ReadonlyMap<string, TensorProto>;
  readonly #consumers: ReadonlyMap<string, NodeProto[]>;
  readonly #producers: ReadonlyMap<string, NodeProto>;
  readonly #outputs: ReadonlySet<string>;
  readonly #made: TensorProto[] = [];
  /** The names of packed weights and biases, by what they were made of: a network may use a matrix twice. */
  readonly #packed = new Map<string, readonly [string, string]>();
  readonly #format: MatrixFormat;

  constructor(graph: GraphProto, floatsOf: FloatsOf, format: MatrixFormat) {
    this.#format = format;
    this.#graph = graph;
    this.#floatsOf = floatsOf;
    this.#constants = constants(graph);
    this.#consumers = consumersOf(graph);
    this.#producers = producersOf(graph);
    this.#outputs = new Set(graph.output.map(({ name }) => name));
  }

  run(): void {
    const matmuls = new Map<NodeProto, MatMul>();
    for (const node of this.#graph.node) {
      const matmul = this.#matMul(node);
      if (matmul) matmuls.set(node, matmul);
    }
    const attentions = this.#format === 'bf16' ? this.#graph.node.filter(isAttention) : [];
    if (matmuls.size + attentions.length === 0)
      throw new Unsupported('it has no matrix products with constant weights');
    // Rows that several matrices multiply are rounded once.
    const sharing = new Map<string, MatMul[]>();
    for (const matmul of matmuls.values()) {
      if (matmul.gelu || matmul.columns % LANES !== 0) continue;
      const known = sharing.get(matmul.from);
      if (known) known.push(matmul);
      else sharing.set(matmul.from, [matmul]);
    }
    const replaced = new Map<NodeProto, NodeProto | undefined>();
    for (const [first, matmul] of matmuls) {
      if (replaced.has(first)) continue;
      const group = sharing.get(matmul.from);
      const together = group?.includes(matmul) ? group : [matmul];
      for (const each of together) for (const node of each.nodes) replaced.set(node, undefined);
      replaced.set(first, this.#matMulNode(together));
    }
    for (const node of attentions) replaced.set(node, attentionNode(node));
    this.#graph.node = this.#graph.node.flatMap((node) =>
      replaced.has(node) ? (replaced.get(node) ?? []) : [node],
    );
    this.#graph.initializer.push(...this.#made);
  }

  /** Returns the constant of floats with this name. */
  #constant(name: string | undefined): TensorProto | undefined {
    return this.#constants.get(name ?? '');
  }

  /** Returns the floats of a constant. */
  #values(name: string): Float32Array {
    const tensor = this.#constant(name);
    if (!tensor) throw new Unsupported(`${name} is no constant`);
    return this.#floatsOf(tensor);
  }

  /** Returns the constant matrix that this is the transposed one of, as exporters of PyTorch 2 write weights. */
  #transposed(name: string): string | undefined {
    const node = this.#producers.get(name);
    const [inner = ''] = node?.opType === 'Transpose' ? node.input : [];
    return node && this.#constant(inner)?.dims.length === 2 && `${intsOf(node, 'perm')}` !== '0,1'
      ? inner
      : undefined;
  }

  /** Whether a constant has one number for each column. */
  #isRow(name: string, columns: number): boolean {
    const sides = this.#constant(name)?.dims.map(Number) ?? [];
    return sides.at(-1) === columns && sides.slice(0, -1).every((side) => side === 1);
  }

  /** Whether a constant is one number, nearly this one. */
  #isNumber(name: string | undefined, number: number): boolean {
    const tensor = this.#constant(name);
    if (!tensor || tensor.dims.some((side) => side !== 1n)) return false;
    return Math.abs((this.#floatsOf(tensor)[0] ?? Number.NaN) - number) < NEARLY;
  }

  /** Returns all that read a tensor; none for an output of the network. */
  #readers(name: string): readonly NodeProto[] {
    return this.#outputs.has(name) ? [] : (this.#consumers.get(name) ?? []);
  }

  #onlyReader(name: string, opType: string, domain = ''): NodeProto | undefined {
    const [node, another] = this.#readers(name);
    return another === undefined && node?.opType === opType && node.domain === domain ? node : undefined;
  }

  #matMul(node: NodeProto): MatMul | undefined {
    if (node.domain !== '' || (node.opType !== 'MatMul' && node.opType !== 'Gemm')) return undefined;
    const [from = '', matrix = '', bias = ''] = node.input;
    const gemm = node.opType === 'Gemm';
    const whole = (name: string) => (attribute(node, name)?.f ?? 1) === 1;
    if (gemm && (attribute(node, 'transA')?.i === 1n || !whole('alpha') || !whole('beta'))) return undefined;
    const inner = this.#transposed(matrix);
    const weights = inner ?? matrix;
    const size = sizeOf(node, this.#constant(weights), inner !== undefined);
    // A bias that is a column has a number for each row.
    if (!size || (bias !== '' && !this.#isRow(bias, size.columns))) return undefined;
    const plain: MatMul = {
      ...{ from, to: node.output[0] ?? '', ...size, weights, bias },
      gelu: false,
      nodes: [node],
    };
    return this.#withGelu(gemm ? plain : this.#withBias(plain));
  }

  /** Adds the Add of a constant row behind it, if there is one. */
  #withBias(matmul: MatMul): MatMul {
    const next = this.#onlyReader(matmul.to, 'Add');
    const other = next?.input.find((name) => name !== matmul.to) ?? '';
    if (!next || !this.#isRow(other, matmul.columns)) return matmul;
    return { ...matmul, to: next.output[0] ?? '', bias: other, nodes: [...matmul.nodes, next] };
  }

  /** Adds the GELU behind it, if there is one. */
  #withGelu(matmul: MatMul): MatMul {
    const with_ = (nodes: readonly NodeProto[], bias = matmul.bias): MatMul => ({
      ...matmul,
      to: nodes.at(-1)?.output[0] ?? '',
      bias,
      gelu: true,
      nodes: [...matmul.nodes, ...nodes],
    });
    const biased = matmul.bias === '' ? this.#onlyReader(matmul.to, 'BiasGelu', MICROSOFT) : undefined;
    const [x, bias = ''] = biased?.input ?? [];
    if (biased && x === matmul.to && this.#isRow(bias, matmul.columns)) return with_([biased], bias);
    const plain = this.#onlyReader(matmul.to, 'Gelu', MICROSOFT) ?? this.#onlyReader(matmul.to, 'Gelu');
    if (plain && (attribute(plain, 'approximate')?.s.length ?? 0) === 0) return with_([plain]);
    const spelled = this.#gelu(matmul.to);
    return spelled ? with_(spelled) : matmul;
  }

  /** Returns the nodes of x * (1 + Erf(x / sqrt(2))) * 0.5, with the halving wherever exporters write it. */
  #gelu(x: string): readonly NodeProto[] | undefined {
    const readers = this.#readers(x);
    if (readers.length !== 2) return undefined;
    const scaled = readers.find(
      (node) =>
        node.input[0] === x &&
        ((node.opType === 'Div' && this.#isNumber(node.input[1], Math.SQRT2)) ||
          (node.opType === 'Mul' && this.#isNumber(node.input[1], Math.SQRT1_2))),
    );
    const other = readers.find((node) => node !== scaled);
    const erf = scaled && this.#onlyReader(scaled.output[0] ?? '', 'Erf');
    const sum = erf && this.#onlyReader(erf.output[0] ?? '', 'Add');
    if (!scaled || !other || !erf || !sum) return undefined;
    if (!sum.input.some((name) => this.#isNumber(name, 1))) return undefined;
    const halves = (node: NodeProto | undefined) =>
      node?.input.some((name) => this.#isNumber(name, 0.5)) === true;
    const [share = ''] = sum.output;
    const head = [scaled, erf, sum];
    const times = (name: string) => this.#onlyReader(name, 'Mul');
    const first = times(share);
    if (first === undefined || other.opType !== 'Mul') return undefined;
    if (first === other) {
      // (x * share) * 0.5
      const last = times(first.output[0] ?? '');
      return last && halves(last) ? [...head, first, last] : undefined;
    }
    // (x * 0.5) * share, or x * (share * 0.5)
    if (halves(other) && first === times(other.output[0] ?? '')) return [...head, other, first];
    return halves(first) && times(first.output[0] ?? '') === other ? [...head, first, other] : undefined;
  }

  #matMulNode(matmuls: readonly MatMul[]): NodeProto {
    const [{ from, to, inputs, gelu }] = matmuls as readonly [MatMul];
    const key = JSON.stringify(matmuls.map(({ weights, turned, bias }) => [weights, turned, bias]));
    const packed = this.#packed.get(key) ?? this.#pack(matmuls);
    this.#packed.set(key, packed);
    const columns = matmuls.map((each) => each.columns);
    const settings = { inputs, columns, gelu: gelu ? 1 : 0 };
    const node = ownNode(`${PREFIX[this.#format]}Product`, [from, ...packed], to, settings);
    node.output = matmuls.map((each) => each.to);
    return node;
  }

  /** Makes the tensors of packed weights and biases, and returns their names. */
  #pack(matmuls: readonly MatMul[]): readonly [string, string] {
    const weights = new Pool<Int8Array>();
    const constants = new Pool<Float32Array>();
    for (const { inputs, columns, turned, ...names } of matmuls) {
      const values = this.#values(names.weights);
      const matrix = turned ? values : transposed({ rows: inputs, columns, values }).values;
      const biases = names.bias === '' ? new Float32Array(columns) : this.#values(names.bias);
      const packed = packMatrix(matrix, [columns, inputs], biases, this.#format);
      weights.add(packed.weights);
      constants.add(packed.constants);
    }
    const constant = (kind: string, type: number, values: Pool<Int8Array> | Pool<Float32Array>) => {
      const name = `${matmuls[0]?.to}/${this.#format}/${kind}`;
      this.#made.push(rawTensor(name, type, [values.length], values.bytes()));
      return name;
    };
    return [constant('weights', INT8, weights), constant('biases', FLOAT, constants)];
  }
}

/** Whether a node is attention of queries, keys and values with nothing added, masked or cached. */
function isAttention(node: NodeProto): boolean {
  if (node.domain !== MICROSOFT || node.opType !== 'MultiHeadAttention') return false;
  const [queries = '', keys = '', values = '', ...rest] = node.input;
  const simple = rest.every((name) => name === '') && node.output.slice(1).every((name) => name === '');
  const plain = attribute(node, 'unidirectional')?.i !== 1n && (attribute(node, 'scale')?.f ?? 0) >= 0;
  return simple && plain && queries !== '' && keys !== '' && values !== '';
}

function attentionNode(node: NodeProto): NodeProto {
  const [to = ''] = node.output;
  return ownNode('Bf16Attention', node.input.slice(0, 3), to, {
    heads: Number(attribute(node, 'num_heads')?.i ?? 1n),
    scale: { float: attribute(node, 'scale')?.f ?? 0 },
  });
}

/** Whether more of a network's weights are in its matrix products than in its convolutions, as in a transformer. */
export function isMostlyMatMuls(graph: GraphProto): boolean {
  const known = constants(graph);
  let [matmuls, convolutions] = [0, 0];
  for (const node of graph.node) {
    const weights = known.get(node.input[1] ?? '');
    if (node.opType === 'MatMul' || node.opType === 'Gemm') {
      const { inputs, columns } = sizeOf(node, weights) ?? { inputs: 0, columns: 0 };
      matmuls += inputs * columns;
    }
    if (node.opType === 'Conv' || node.opType === 'DeformConv')
      convolutions += weights?.dims.reduce((size, side) => size * Number(side), 1) ?? 0;
  }
  return matmuls > convolutions;
}

/**
 * Makes the matrix products of a float network that have constant weights operators of Cutout in bf16 or 8 bits, and in bf16
 * its attentions (`Bf16Product`, `Int8Product`, `Bf16Attention`: native/ort/custom_operators.h), between the operators that
 * are left as they are. Throws a RangeError, and leaves the graph as it is, where there are none.
 */
export const replaceMatMuls = (graph: GraphProto, floats: FloatsOf, format: MatrixFormat): void =>
  new MatMulsConverter(graph, floats, format).run();
