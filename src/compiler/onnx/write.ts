import { clearField, toBinary } from '@bufbuild/protobuf';
import {
  GraphProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  type TensorProto,
  TensorProtoSchema,
} from './onnx_pb.ts';

/** Limit of protobuf: lengths have 31 bits. */
const MAX_BYTES = 2 ** 31 - 1;

const LENGTH_DELIMITED = 2;

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}

/** Returns the tag and length of a length-delimited field. */
function fieldHead(number: number, length: number): Uint8Array {
  return Uint8Array.from([...varint((number << 3) | LENGTH_DELIMITED), ...varint(length)]);
}

/** Encoding of a tensor in two parts: everything but its values, and its values. */
interface Parts {
  readonly head: Uint8Array;
  readonly dataBytes: number;
  readonly data: () => Uint8Array;
}

/**
 * Encodes a model piece by piece: memory beside the model itself is bounded by its largest tensor. Consumes
 * the model, which must not be used afterwards. Throws a RangeError if the result would exceed the limit of
 * an ONNX file. @param widened tensors whose bytes are still binary16; `widenBytes` doubles their length
 */
export function encodeModel(
  model: ModelProto,
  widened: ReadonlySet<TensorProto>,
  widenBytes: (half: Uint8Array) => Uint8Array,
): Iterable<Uint8Array> {
  const { graph } = model;
  if (!graph) throw new RangeError('the model has no graph');
  const parts = graph.initializer.map((tensor): Parts => {
    const stored = tensor.rawData;
    const doubled = widened.has(tensor);
    clearField(tensor, TensorProtoSchema.field.rawData);
    const fields = toBinary(TensorProtoSchema, tensor);
    const dataBytes = stored.length * (doubled ? 2 : 1);
    // An empty raw_data field would contradict values stored in another field.
    const dataHead =
      stored.length > 0 ? fieldHead(TensorProtoSchema.field.rawData.number, dataBytes) : new Uint8Array();
    return {
      head: Buffer.concat([
        fieldHead(GraphProtoSchema.field.initializer.number, fields.length + dataHead.length + dataBytes),
        fields,
        dataHead,
      ]),
      dataBytes,
      data: () => (doubled ? widenBytes(stored) : stored),
    };
  });
  graph.initializer = [];
  const graphFields = toBinary(GraphProtoSchema, graph);
  const graphBytes = parts.reduce((sum, part) => sum + part.head.length + part.dataBytes, graphFields.length);
  if (graphBytes > MAX_BYTES)
    throw new RangeError('the network is larger than the 2 GB an ONNX file can hold');
  clearField(model, ModelProtoSchema.field.graph);
  const modelFields = toBinary(ModelProtoSchema, model);
  return (function* pieces() {
    yield modelFields;
    yield fieldHead(ModelProtoSchema.field.graph.number, graphBytes);
    yield graphFields;
    for (const part of parts) {
      yield part.head;
      yield part.data();
    }
  })();
}
