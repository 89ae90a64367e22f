import { type DescField, type DescMessage, fromBinary, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { type ModelProto, ModelProtoSchema } from '../compiler/onnx/onnx_pb.ts';
import { ModelError, unsupported } from './error.ts';

/** Longest file: protobuf allows no longer message. */
export const MAX_MODEL_BYTES = 2 ** 31 - 1;

/**
 * What a file may consist of. Every field and every number outside raw data becomes a value in JavaScript of 8 to some
 * hundred bytes; the largest published network of the catalogue has 0.2 million fields.
 */
const MAX_FIELDS = 2_000_000;
const MAX_NUMBERS = 64_000_000;
/** Numbers of 32-bit floats that one integer of variable length counts as: it may become a BigInt. */
const VARINT = 16;
/** Graphs within nodes within graphs, each some messages deep. */
const MAX_DEPTH = 60;

/** Fields that networks of one image do not need, by message and number, and what they are called. */
const REFUSED: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  'onnx.ModelProto': {
    20: 'instructions for training',
    25: 'functions of its own (inline them first, for example with onnx.inliner)',
  },
  'onnx.GraphProto': { 15: 'sparse tensors' },
  'onnx.AttributeProto': { 10: 'lists of tensors', 22: 'sparse tensors', 23: 'lists of sparse tensors' },
};

/** Fields of a tensor that is kept in another file. */
const EXTERNAL_DATA = 13;
const DATA_LOCATION = 14;

/** Returns how many floats the packed numbers of a field count as; 0 for bytes and texts, which become one value. */
function packedNumbers(field: DescField | undefined, length: number): number {
  if (field?.fieldKind !== 'list' || field.listKind !== 'scalar') return 0;
  if (field.scalar === ScalarType.FLOAT) return length / 4;
  return field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES ? 0 : length * VARINT;
}

class Scan {
  readonly #reader: BinaryReader;
  #fields = 0;
  #numbers = 0;

  constructor(file: Uint8Array) {
    this.#reader = new BinaryReader(file);
  }

  /** Reads the fields of a message up to the position `end`. */
  message(desc: DescMessage, end: number, depth = 0): void {
    const reader = this.#reader;
    if (depth > MAX_DEPTH) throw tooLarge('graphs nested in each other');
    const fields = new Map(desc.fields.map((field) => [field.number, field]));
    while (reader.pos < end) {
      const [number, wire] = reader.tag();
      if (++this.#fields > MAX_FIELDS) throw tooLarge('parts');
      this.#refuse(desc, number);
      if (desc.typeName === 'onnx.TensorProto' && number === DATA_LOCATION && wire === WireType.Varint) {
        if (reader.int32() !== 0) throw external();
        continue;
      }
      if (wire === WireType.StartGroup || wire === WireType.EndGroup)
        throw new RangeError('it has a field of a kind that ONNX does not use');
      if (wire !== WireType.LengthDelimited) {
        reader.skip(wire, number);
        continue;
      }
      const length = reader.uint32();
      const last = reader.pos + length;
      if (last > end) throw new RangeError('a part ends after the file');
      const field = fields.get(number);
      if (field?.message) this.message(field.message, last, depth + 1);
      else {
        this.#numbers += packedNumbers(field, length);
        reader.pos = last;
      }
      if (this.#numbers > MAX_NUMBERS) throw tooLarge('numbers outside raw data');
    }
    if (reader.pos !== end) throw new RangeError('a part ends inside another one');
  }

  #refuse({ typeName }: DescMessage, number: number): void {
    if (typeName === 'onnx.TensorProto' && number === EXTERNAL_DATA) throw external();
    const refused = REFUSED[typeName]?.[number];
    if (refused !== undefined) {
      throw unsupported(`The file has ${refused}, which is not supported.`);
    }
  }
}

const tooLarge = (what: string) =>
  new ModelError('MODEL_TOO_LARGE', `The file has more ${what} than a network needs and is not read.`);

const external = () =>
  new ModelError(
    'MODEL_EXTERNAL_DATA',
    'The file keeps weights in other files, which is refused: such a file can name any file of this machine. Save the network with all weights in one file.',
  );

/**
 * Reads an ONNX file that nobody vouches for. Its parts are counted before any is read, so that a small file cannot
 * take much memory. `file` is borrowed by the result. Throws ModelError: `MODEL_DAMAGED`, `MODEL_TOO_LARGE`,
 * `MODEL_EXTERNAL_DATA`, `MODEL_UNSUPPORTED`.
 */
export function readUntrusted(file: Uint8Array): ModelProto {
  try {
    new Scan(file).message(ModelProtoSchema, file.length);
    return fromBinary(ModelProtoSchema, file);
  } catch (cause) {
    if (cause instanceof ModelError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ModelError('MODEL_DAMAGED', `The file is not an ONNX file, or not a complete one: ${reason}.`, {
      cause,
    });
  }
}
