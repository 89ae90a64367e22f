import { apply, inverse, type Matrix, type Triple, transposed } from './matrix.ts';

/** x and y of a colour (CIE 1931). */
export type Chromaticity = readonly [x: number, y: number];

export interface Gamut {
  readonly red: Chromaticity;
  readonly green: Chromaticity;
  readonly blue: Chromaticity;
  readonly white: Chromaticity;
}

/** Encoded value to linear light, both 0 to 1. */
export type Transfer = (encoded: number) => number;

const d65: Chromaticity = [0.3127, 0.329];

export const srgbGamut: Gamut = { red: [0.64, 0.33], green: [0.3, 0.6], blue: [0.15, 0.06], white: d65 };
export const displayP3: Gamut = { red: [0.68, 0.32], green: [0.265, 0.69], blue: [0.15, 0.06], white: d65 };

/** IEC 61966-2-1. */
export const srgbTransfer: Transfer = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);

/** White of the connection space (ICC.1:2022, section 6.3.4.3). */
const d50: Triple = [0.9642, 1, 0.8249];

/** XYZ to the responses of the cones, by Bradford. */
const bradford: Matrix = [
  [0.8951, 0.2664, -0.1614],
  [-0.7502, 1.7135, 0.0367],
  [0.0389, -0.0685, 1.0296],
];

const xyzOf = ([x, y]: Chromaticity): Triple => [x / y, 1, (1 - x - y) / y];

/** XYZ under D50 of red, green and blue at full light; undefined for primaries that span no plane. */
function columns({ red, green, blue, white }: Gamut): readonly Triple[] | undefined {
  const primaries: Matrix = [xyzOf(red), xyzOf(green), xyzOf(blue)];
  const unmixed = inverse(transposed(primaries));
  const back = inverse(bradford);
  if (!unmixed || !back) return undefined;
  const shares = apply(unmixed, xyzOf(white));
  const from = apply(bradford, xyzOf(white));
  const to = apply(bradford, d50);
  const found = primaries.map((primary, i) => {
    const [long, medium, short] = apply(bradford, primary);
    const share = shares[i] ?? 0;
    return apply(back, [
      (long * share * to[0]) / from[0],
      (medium * share * to[1]) / from[1],
      (short * share * to[2]) / from[2],
    ]);
  });
  return found.flat().every((value) => Number.isFinite(value) && Math.abs(value) < 4) ? found : undefined;
}

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeInt32BE(value | 0, 4 * i);
  return bytes;
};

const xyzTag = (values: Triple): Buffer =>
  Buffer.concat([Buffer.from('XYZ \0\0\0\0'), words(...values.map((value) => Math.round(value * 65_536)))]);

/** Entries of a curve: between two of them it is straight. */
const entries = 4096;

function curveTag(transfer: Transfer): Buffer {
  const table = Buffer.alloc(2 * entries);
  for (let i = 0; i < entries; i++) {
    const light = Math.min(1, Math.max(0, transfer(i / (entries - 1))));
    table.writeUInt16BE(Math.round(light * 65_535), 2 * i);
  }
  return Buffer.concat([Buffer.from('curv\0\0\0\0'), words(entries), table]);
}

/** A profile of these tags; the same bytes under several names are stored once. */
function profile(space: 'RGB ' | 'GRAY', tags: readonly (readonly [name: string, body: Buffer])[]): Buffer {
  const bodies = [...new Set(tags.map(([, body]) => body))];
  const offsets = new Map<Buffer, number>();
  let end = 128 + 4 + 12 * tags.length;
  for (const body of bodies) {
    offsets.set(body, end);
    // Of a length that is a multiple of 4.
    end += body.length;
  }
  const header = Buffer.alloc(128);
  header.writeUInt32BE(end, 0);
  header.writeUInt32BE(0x02400000, 8);
  header.write(`mntr${space}XYZ `, 12, 'latin1');
  header.write('acsp', 36, 'latin1');
  words(...d50.map((value) => Math.round(value * 65_536))).copy(header, 68);
  const table = tags.map(([name, body]) =>
    Buffer.concat([Buffer.from(name, 'latin1'), words(offsets.get(body) ?? 0, body.length)]),
  );
  return Buffer.concat([header, words(tags.length), ...table, ...bodies]);
}

/** An RGB profile of version 2.4 (ICC.1:2001-04); undefined for primaries that span no plane. */
export function rgbProfile(gamut: Gamut, transfer: Transfer): Buffer | undefined {
  const found = columns(gamut);
  if (!found) return undefined;
  const [red, green, blue] = found.map(xyzTag);
  if (!red || !green || !blue) return undefined;
  const curve = curveTag(transfer);
  return profile('RGB ', [
    ['wtpt', xyzTag(d50)],
    ['rXYZ', red],
    ['gXYZ', green],
    ['bXYZ', blue],
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ]);
}

export const grayProfile = (transfer: Transfer): Buffer =>
  profile('GRAY', [
    ['wtpt', xyzTag(d50)],
    ['kTRC', curveTag(transfer)],
  ]);
