/**
 * Bounds of ICC profiles (ICC.1:2022). The colour library reads whatever a tag names, as often as it names it: a
 * multi-process element may name one matrix a thousand times, which takes more than linear time. So a profile
 * reaches it, and a result, only with tags that are known here and whose work is bounded by their own bytes.
 */

/** Tags before which colour libraries stop reading. */
const maxTags = 100;
/** Entries of a curve; profiles in use have no more. */
const maxCurveEntries = 4096;
/** CMYK is the space with the most channels that images have. */
const maxChannels = 4;
/** Bytes of a profile; those of presses have up to three megabytes. */
const maxBytes = 8 * 1024 * 1024;
/** Bytes of all tags together, for each byte of the profile: tags may share data. */
const maxOverlap = 2;

const headerBytes = 128;
const [tableAt, entryBytes] = [headerBytes + 4, 12] as const;
/** The profile's own checksum; zero: not computed. */
const [idAt, idBytes] = [84, 16] as const;

const text = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((byte) => view.getUint8(at + byte)));

/** Bytes of a `curveType` or `parametricCurveType`; undefined: none, or too long. */
function curveBytes(tag: DataView, at: number): number | undefined {
  const type = text(tag, at);
  if (type === 'curv') {
    const entries = tag.getUint32(at + 8);
    return entries <= maxCurveEntries ? 12 + 2 * entries : undefined;
  }
  const parameters = type === 'para' ? [1, 3, 4, 5, 7][tag.getUint16(at + 8)] : undefined;
  return parameters && 12 + 4 * parameters;
}

const isCurve = (tag: DataView): boolean =>
  (curveBytes(tag, 0) ?? Number.POSITIVE_INFINITY) <= tag.byteLength;

/** Curves one behind the other, each at a multiple of four bytes. */
function areCurves(tag: DataView, from: number, count: number): boolean {
  let at = from;
  for (let i = 0; i < count; i++) {
    const bytes = curveBytes(tag, at);
    if (bytes === undefined || at + bytes > tag.byteLength) return false;
    at += Math.ceil(bytes / 4) * 4;
  }
  return true;
}

const product = (numbers: readonly number[]): number => numbers.reduce((all, number) => all * number, 1);

/** `lut8Type`, `lut16Type`, `lutAToBType` and `lutBToAType`: everything they hold lies within them. */
function isTable(tag: DataView): boolean {
  const type = text(tag, 0);
  const [inputs, outputs] = [tag.getUint8(8), tag.getUint8(9)];
  if (inputs < 1 || inputs > maxChannels || outputs < 1 || outputs > maxChannels) return false;
  const grid = tag.getUint8(10) ** inputs * outputs;
  if (type === 'mft1') return 48 + 256 * (inputs + outputs) + grid <= tag.byteLength;
  if (type === 'mft2') {
    const [before, after] = [tag.getUint16(48), tag.getUint16(50)];
    if (Math.max(before, after) > maxCurveEntries) return false;
    return 52 + 2 * (before * inputs + grid + after * outputs) <= tag.byteLength;
  }
  if (type !== 'mAB ' && type !== 'mBA ') return false;
  const toConnection = type === 'mAB ';
  const parts = [12, 16, 20, 24, 28].map((at) => tag.getUint32(at));
  const [b = 0, matrix = 0, m = 0, clut = 0, a = 0] = parts;
  const curves = (at: number, count: number) => at === 0 || areCurves(tag, at, count);
  const points = () => {
    const sides = Array.from({ length: inputs }, (_, i) => tag.getUint8(clut + i));
    return clut + 20 + product(sides) * outputs * tag.getUint8(clut + 16);
  };
  return (
    curves(a, toConnection ? inputs : outputs) &&
    curves(m, toConnection ? outputs : inputs) &&
    curves(b, toConnection ? outputs : inputs) &&
    (matrix === 0 || matrix + 48 <= tag.byteLength) &&
    (clut === 0 || points() <= tag.byteLength)
  );
}

/** Bytes of the longest value of three or nine numbers, with its head. */
const maxValueBytes = 64;
const isOfType =
  (type: string) =>
  (tag: DataView): boolean =>
    text(tag, 0) === type && tag.byteLength <= maxValueBytes;
const isXyz = isOfType('XYZ ');
/** What describes a profile is read by no conversion. */
const describes = (tag: DataView): boolean => text(tag, 0) !== 'mpet';

/** The tags that may stay, and what their data must be. */
const known: ReadonlyMap<string, (tag: DataView) => boolean> = new Map<string, (tag: DataView) => boolean>([
  ...['A2B0', 'A2B1', 'A2B2', 'B2A0', 'B2A1', 'B2A2', 'gamt'].map((name) => [name, isTable] as const),
  ...['rTRC', 'gTRC', 'bTRC', 'kTRC'].map((name) => [name, isCurve] as const),
  ...['rXYZ', 'gXYZ', 'bXYZ', 'wtpt', 'bkpt', 'lumi'].map((name) => [name, isXyz] as const),
  ['chad', isOfType('sf32')],
  ...['desc', 'cprt', 'dmnd', 'dmdd', 'dscm', 'vued', 'view', 'tech', 'meas', 'chrm', 'calt'].map(
    (name) => [name, describes] as const,
  ),
  ...['targ', 'vcgt', 'vcgp', 'mmod', 'ndin', 'cicp', 'ciis', 'rig0', 'rig2', 'pseq', 'psid'].map(
    (name) => [name, describes] as const,
  ),
  ...['aarg', 'aagg', 'aabg', 'arts', 'bfd ', 'ps2s', 'ps2i', 'psvm', 'CIED', 'DevD', 'clrt', 'meta'].map(
    (name) => [name, describes] as const,
  ),
]);

/** Sets of tags of which one is enough for a conversion, by the colour space of the profile. */
const tables = [['A2B0'], ['A2B1'], ['A2B2']] as const;
const conversions: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'RGB ': [...tables, ['rXYZ', 'gXYZ', 'bXYZ', 'rTRC', 'gTRC', 'bTRC']],
  GRAY: [...tables, ['kTRC']],
  CMYK: tables,
};
/** Input, display, output and colour space profiles; others are no description of an image. */
const classes: readonly string[] = ['scnr', 'mntr', 'prtr', 'spac'];

interface Kept {
  readonly name: string;
  readonly entry: Uint8Array;
  readonly place: string;
  readonly bytes: number;
}

function keptTags(icc: Uint8Array, view: DataView, length: number, count: number): readonly Kept[] {
  const kept = new Map<string, Kept>();
  for (let i = 0; i < count; i++) {
    const at = tableAt + i * entryBytes;
    const name = text(view, at);
    const [from, bytes] = [view.getUint32(at + 4), view.getUint32(at + 8)];
    const check = known.get(name);
    if (!check || kept.has(name) || bytes < 8 || from + bytes > length) continue;
    try {
      if (!check(new DataView(icc.buffer, icc.byteOffset + from, bytes))) continue;
    } catch (error) {
      if (error instanceof RangeError) continue;
      throw error;
    }
    kept.set(name, { name, entry: icc.subarray(at, at + entryBytes), place: `${from}+${bytes}`, bytes });
  }
  return [...kept.values()];
}

/**
 * The profile with only the tags that conversions and people need, each bounded; the same bytes if it has no others.
 * Its length is the same, only header and table of tags are changed. Undefined for a profile that describes no RGB, gray
 * or CMYK image, for one that has no complete conversion left, and for one of more than 8 MB.
 */
export function boundedProfile(icc: Uint8Array): Uint8Array | undefined {
  if (icc.length < tableAt || icc.length > maxBytes) return;
  const view = new DataView(icc.buffer, icc.byteOffset, icc.byteLength);
  const length = Math.min(icc.length, view.getUint32(0));
  const count = view.getUint32(headerBytes);
  if (text(view, 36) !== 'acsp' || !classes.includes(text(view, 12)) || count > maxTags) return;
  if (tableAt + count * entryBytes > length) return;
  const kept = keptTags(icc, view, length, count);
  const names = new Set(kept.map(({ name }) => name));
  if (!conversions[text(view, 16)]?.some((needed) => needed.every((name) => names.has(name)))) return;
  const shared = new Map(kept.map(({ place, bytes }) => [place, bytes]));
  if ([...shared.values()].reduce((sum, bytes) => sum + bytes, 0) > maxOverlap * length) return;
  if (kept.length === count) return icc;

  const bounded = Uint8Array.from(icc);
  bounded.fill(0, idAt, idAt + idBytes);
  bounded.fill(0, tableAt, tableAt + count * entryBytes);
  new DataView(bounded.buffer).setUint32(headerBytes, kept.length);
  for (const [i, { entry }] of kept.entries()) bounded.set(entry, tableAt + i * entryBytes);
  return bounded;
}

/** Bytes of header and table of tags: all that `boundedProfile` may change. */
export const changedBytes = (icc: Uint8Array): number =>
  tableAt + entryBytes * new DataView(icc.buffer, icc.byteOffset, icc.byteLength).getUint32(headerBytes);
