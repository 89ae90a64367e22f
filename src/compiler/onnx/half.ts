import { floatValues } from './graph.ts';
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

/** Reads the values of a float tensor in any encoding into a new array. Throws a RangeError for a tensor of another type. */
export type FloatsOf = (tensor: TensorProto) => Float32Array;

/** Returns a reader of float tensors; those in `widened` still hold binary16. */
export function floatReader(
  widened: ReadonlySet<TensorProto>,
  widenBytes: (half: Uint8Array) => Uint8Array,
): FloatsOf {
  return (tensor) => {
    if (widened.has(tensor)) return new Float32Array(widenBytes(tensor.rawData).buffer);
    const values = floatValues(tensor);
    if (!values) throw new RangeError(`the tensor ${tensor.name} is not of 32-bit floats`);
    return values;
  };
}
