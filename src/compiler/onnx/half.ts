import { FLOAT } from './graph.ts';
import type { TensorProto } from './onnx_pb.ts';

/** Returns the value of an IEEE 754 binary16 number given by its 16 bits. */
function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * Returns a converter from little-endian binary16 to little-endian binary32; exact. It owns a table of all
 * 65536 values, so make one per network.
 */
export function halfWidener(): (half: Uint8Array) => Uint8Array {
  const table = Float32Array.from({ length: 65536 }, (_, bits) => halfToNumber(bits));
  return (half) => {
    if (half.length % 2 !== 0) throw new RangeError(`${half.length} bytes are not a list of 16-bit numbers`);
    const source = new DataView(half.buffer, half.byteOffset, half.byteLength);
    const floats = new Uint8Array(half.length * 2);
    const target = new DataView(floats.buffer);
    for (let at = 0; at < half.length; at += 2) {
      target.setFloat32(at * 2, table[source.getUint16(at, true)] ?? Number.NaN, true);
    }
    return floats;
  };
}

/**
 * Returns a reader of float tensors into new arrays; tensors in `widened` still hold binary16. It throws a
 * RangeError for a tensor of another type.
 */
export function floatReader(
  widened: ReadonlySet<TensorProto>,
  widenBytes: (half: Uint8Array) => Uint8Array,
): (tensor: TensorProto) => Float32Array {
  return (tensor) => {
    if (tensor.dataType !== FLOAT) throw new RangeError(`the tensor ${tensor.name} is not of 32-bit floats`);
    if (tensor.rawData.length === 0) return Float32Array.from(tensor.floatData);
    const bytes = widened.has(tensor) ? widenBytes(tensor.rawData) : Uint8Array.from(tensor.rawData);
    return new Float32Array(bytes.buffer);
  };
}
