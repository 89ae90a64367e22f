import { setImmediate as turn } from 'node:timers/promises';
import { apply, inverse, type Matrix, product, type Triple, transposed } from './matrix.ts';
import { type Transfer as Curve, srgbTransfer } from './matrixProfile.ts';
import type { Raster } from './types.ts';

/** Linear sRGB to XYZ under D50, the connection space of ICC profiles (IEC 61966-2-1, adapted by Bradford). */
const srgbToXyz: Matrix = [
  [0.4360747, 0.3850649, 0.1430804],
  [0.2225045, 0.7168786, 0.0606169],
  [0.0139322, 0.0971045, 0.7141733],
];

/** The table is indexed by the square root of linear light, which resolves dark tones as finely as light ones. */
const lastStep = 4095;

/** The maximum number of entries of a curve that is read; profiles in use have no more. */
const maxEntries = 4096;

/** Pixels between two turns of the event loop: about 1 ms. */
const pixelsPerTurn = 65_536;

/** Conversion of colours between sRGB and another RGB space, 8 bits per channel. */
interface Conversion {
  colour(rgb: Triple): Triple;
  /** Converts in place; alpha is unchanged. Yields to the event loop; rejects with the signal's reason. */
  raster(image: Raster, signal?: AbortSignal): Promise<void>;
}

function tags(icc: DataView): ReadonlyMap<string, DataView> {
  const found = new Map<string, DataView>();
  const count = Math.min(icc.getUint32(128), 100);
  for (let i = 0; i < count; i++) {
    const at = 132 + 12 * i;
    const name = String.fromCharCode(...[0, 1, 2, 3].map((byte) => icc.getUint8(at + byte)));
    const [from, bytes] = [icc.getUint32(at + 4), icc.getUint32(at + 8)];
    if (from + bytes > icc.byteLength) throw new RangeError('a tag outside of its profile');
    found.set(name, new DataView(icc.buffer, icc.byteOffset + from, bytes));
  }
  return found;
}

const fixed = (tag: DataView, at: number): number => tag.getInt32(at) / 65_536;

/** `XYZType` (ICC.1:2022, section 10.31). */
const xyz = (tag: DataView): Triple => [fixed(tag, 8), fixed(tag, 12), fixed(tag, 16)];

/** `curveType` and `parametricCurveType` (ICC.1:2022, sections 10.6 and 10.18). */
function curve(tag: DataView): Curve | undefined {
  const kind = tag.getUint32(0);
  if (kind === 0x63757276) {
    const count = tag.getUint32(8);
    if (count === 0) return (v) => v;
    if (count === 1) {
      const gamma = tag.getUint16(12) / 256;
      return (v) => v ** gamma;
    }
    if (count > maxEntries) return;
    if (12 + 2 * count > tag.byteLength) throw new RangeError('a curve outside of its tag');
    const table = Float64Array.from({ length: count }, (_, i) => tag.getUint16(12 + 2 * i) / 65_535);
    return (v) => {
      const at = v * (count - 1);
      const low = Math.min(Math.floor(at), count - 2);
      const [from = 0, to = 0] = table.subarray(low, low + 2);
      return from + (to - from) * (at - low);
    };
  }
  if (kind !== 0x70617261) return;
  const shape = tag.getUint16(8);
  const count = [1, 3, 4, 5, 7][shape];
  if (count === undefined) return;
  const [g = 1, a = 1, b = 0, c = 0, d = 0, e = 0, f = 0] = Array.from({ length: count }, (_, i) =>
    fixed(tag, 12 + 4 * i),
  );
  const power = (v: number) => Math.max(0, a * v + b) ** g;
  if (shape === 0) return (v) => v ** g;
  if (shape === 1) return (v) => (v >= -b / a ? power(v) : 0);
  if (shape === 2) return (v) => (v >= -b / a ? power(v) + c : c);
  return (v) => (v >= d ? power(v) + e : c * v + f);
}

/** Linear sRGB to the linear space of these primaries; white maps to white whatever their rounding. */
function lightMatrix(red: Triple, green: Triple, blue: Triple): Matrix | undefined {
  const back = inverse(transposed([red, green, blue]));
  if (!back) return;
  const raw = product(back, srgbToXyz);
  const white = apply(raw, [1, 1, 1]);
  const row = (i: 0 | 1 | 2): Triple => {
    const [r, g, b] = raw[i];
    return [r / white[i], g / white[i], b / white[i]];
  };
  return [row(0), row(1), row(2)];
}

/** The nearest of 256 encoded values for each step of the square root of linear light. */
function encoding(light: Curve): Uint8Array {
  const table = new Uint8Array(lastStep + 1);
  let encoded = 0;
  for (let step = 0; step <= lastStep; step++) {
    const wanted = (step / lastStep) ** 2;
    // The curve is monotonic, so the search continues from the last result.
    while (encoded < 255 && light((encoded + 0.5) / 255) < wanted) encoded++;
    table[step] = encoded;
  }
  return table;
}

type Tables<T> = readonly [red: T, green: T, blue: T];

/** Linear light of the 256 encoded values. */
const decoding = (light: Curve) => Float64Array.from({ length: 256 }, (_, v) => light(v / 255));

function converter(decode: Tables<Float64Array>, matrix: Matrix, encode: Tables<Uint8Array>): Conversion {
  const [redLight, greenLight, blueLight] = decode;
  const [[rr, rg, rb], [gr, gg, gb], [br, bg, bb]] = matrix;
  const [red, green, blue] = encode;
  // Values outside the other space are clipped to its border, so none is NaN.
  const step = (value: number) => Math.round(Math.sqrt(Math.min(1, Math.max(0, value))) * lastStep);
  const convert = (data: Uint8Array, from: number, to: number) => {
    for (let at = from; at < to; at += 4) {
      const r = redLight[data[at] ?? 0] ?? 0;
      const g = greenLight[data[at + 1] ?? 0] ?? 0;
      const b = blueLight[data[at + 2] ?? 0] ?? 0;
      data[at] = red[step(rr * r + rg * g + rb * b)] ?? 0;
      data[at + 1] = green[step(gr * r + gg * g + gb * b)] ?? 0;
      data[at + 2] = blue[step(br * r + bg * g + bb * b)] ?? 0;
    }
  };
  return {
    colour([r, g, b]) {
      const pixel = Uint8Array.of(r, g, b, 255);
      convert(pixel, 0, 4);
      const [x = 0, y = 0, z = 0] = pixel;
      return [x, y, z];
    },
    async raster({ data, width, height }, signal) {
      const end = width * height * 4;
      for (let from = 0; from < end; from += 4 * pixelsPerTurn) {
        signal?.throwIfAborted();
        convert(data, from, Math.min(end, from + 4 * pixelsPerTurn));
        await turn();
      }
    },
  };
}

/** No colour of a grid moves by more than one level: the profile describes sRGB. */
function isSrgb({ colour }: Conversion): boolean {
  const levels = [0, 32, 64, 96, 128, 160, 192, 224, 255];
  return levels.every((r) =>
    levels.every((g) =>
      levels.every((b) => {
        const [x, y, z] = colour([r, g, b]);
        return Math.max(Math.abs(x - r), Math.abs(y - g), Math.abs(z - b)) <= 1;
      }),
    ),
  );
}

interface Space {
  /** Linear sRGB to the linear space. */
  readonly matrix: Matrix;
  readonly curves: Tables<Curve>;
}

/** The space of a profile with three primaries and three curves; undefined for others. */
function spaceOf(icc: Uint8Array): Space | undefined {
  try {
    const found = tags(new DataView(icc.buffer, icc.byteOffset, icc.byteLength));
    // A profile with lookup tables must be read by them.
    if (found.has('A2B0') || found.has('B2A0')) return;
    const [red, green, blue] = ['rXYZ', 'gXYZ', 'bXYZ'].map((name) => found.get(name));
    const [redTone, greenTone, blueTone] = ['rTRC', 'gTRC', 'bTRC'].map((name) => found.get(name));
    if (!red || !green || !blue || !redTone || !greenTone || !blueTone) return;
    const matrix = lightMatrix(xyz(red), xyz(green), xyz(blue));
    const [r, g, b] = [curve(redTone), curve(greenTone), curve(blueTone)];
    return matrix && r && g && b && { matrix, curves: [r, g, b] };
  } catch (error) {
    // A length or an offset leads outside the profile.
    if (error instanceof RangeError) return;
    throw error;
  }
}

function conversionOf({ matrix, curves: [r, g, b] }: Space): Conversion | undefined {
  const light = decoding(srgbTransfer);
  const conversion = converter([light, light, light], matrix, [encoding(r), encoding(g), encoding(b)]);
  return isSrgb(conversion) ? undefined : conversion;
}

/**
 * Converts from sRGB to the space of an RGB profile with three primaries and three curves (Display P3, Adobe
 * RGB, ProPhoto and those of cameras and displays), relative colorimetric. Undefined if no conversion is
 * needed (sRGB), and for profiles with lookup tables: a result keeps those, but nothing is converted to them
 * (decision 0089).
 *
 * @param icc a complete RGB profile (`usableRgbProfile`)
 */
export function fromSrgb(icc: Uint8Array): Conversion | undefined {
  const space = spaceOf(icc);
  return space && conversionOf(space);
}

/** The inverse of `fromSrgb`, for the same profiles; colours outside sRGB are clipped. */
export function toSrgb(icc: Uint8Array): Conversion | undefined {
  const space = spaceOf(icc);
  const matrix = space && inverse(space.matrix);
  if (!matrix || !conversionOf(space)) return;
  const [r, g, b] = space.curves;
  const encode = encoding(srgbTransfer);
  return converter([decoding(r), decoding(g), decoding(b)], matrix, [encode, encode, encode]);
}
