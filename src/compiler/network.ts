import { create, fromBinary } from '@bufbuild/protobuf';
import { allTensors, OPERATORS_DOMAIN } from './onnx/graph.ts';
import { type FloatsOf, floatReader, halfWidener } from './onnx/half.ts';
import {
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  OperatorSetIdProtoSchema,
  type TensorProto,
} from './onnx/onnx_pb.ts';
import { hasHalf, widen } from './onnx/widen.ts';
import { encodeModel } from './onnx/write.ts';

/** A network while it is compiled, and what is found out of it. */
export class Network {
  readonly model: ModelProto;
  readonly graph: GraphProto;
  readonly #widenBytes = halfWidener();
  /** Tensors of 32-bit floats whose bytes are still binary16, until they are read or written. */
  #widened: ReadonlySet<TensorProto> = new Set();
  /** Number that both sides of the input must be a multiple of; 0 if the size is fixed. */
  sizeStep = 0;
  /** Whether several images can be run in one batch. */
  freeBatch = false;
  /** Whether it has an operator of Cutout. */
  operators = false;

  /** Throws a RangeError for a model without a graph, or one that keeps tensors in other files. */
  constructor(model: ModelProto) {
    const { graph } = model;
    if (!graph) throw new RangeError('the file has no graph');
    for (const tensor of allTensors(graph)) {
      if (tensor.externalData.length > 0 || tensor.dataLocation !== 0)
        throw new RangeError(`tensor ${tensor.name} is kept in another file, which is refused`);
    }
    this.model = model;
    this.graph = graph;
  }

  /** Reads an ONNX file, which is borrowed. Throws an Error of the protobuf reader for other bytes. */
  static read(file: Uint8Array): Network {
    return new Network(fromBinary(ModelProtoSchema, file));
  }

  readonly floats: FloatsOf = (tensor) => floatReader(this.#widened, this.#widenBytes)(tensor);

  /** Widens float16 to float32. */
  widen(): void {
    if (hasHalf(this.graph)) this.#widened = widen(this.graph, this.#widenBytes);
  }

  /** Declares that it has operators of Cutout. */
  useOperators(): void {
    this.model.opsetImport.push(create(OperatorSetIdProtoSchema, { domain: OPERATORS_DOMAIN, version: 1n }));
    this.operators = true;
  }

  /** Returns the ONNX file in pieces, which may be iterated once; the network must not be used afterwards. */
  encode(): Iterable<Uint8Array> {
    return encodeModel(this.model, this.#widened, this.#widenBytes);
  }
}
