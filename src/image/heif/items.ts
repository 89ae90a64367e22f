/**
 * Items of a HEIF file (ISO/IEC 23008-12), which AVIF and HEIC are: images, tiles of images, their metadata.
 * Reading throws RangeError where a length or an offset leads outside the file. The numbers of boxes, items and
 * extents are bounded by `checkHeif`.
 */

export interface Property {
  readonly type: string;
  readonly body: Buffer;
}

export interface Item {
  readonly type: string;
  /** Its properties in the order of their association, which is that of transformations. */
  readonly properties: readonly Property[];
  /** Length of its data in the file. */
  readonly bytes: number;
  /** Whether all of it is in the file. */
  readonly complete: boolean;
  /** Its data, in one piece. */
  readonly data: () => Buffer;
}

interface Reference {
  readonly type: string;
  readonly from: number;
  readonly to: readonly number[];
}

export interface Items {
  readonly primary: number;
  readonly items: ReadonlyMap<number, Item>;
  readonly references: readonly Reference[];
}

/** Items that references name, in all of them. */
const maxReferences = 10_000;

/** Properties of all items: some ten for each of as many as `checkHeif` admits. */
const maxAssociations = 20_000;

/** Reads numbers one behind the other. */
export class Cursor {
  readonly bytes: Buffer;
  at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Reads a number of 0 to 8 bytes. One of 8 is inexact above 2^53, which is beyond any file. */
  number(bytes: number): number {
    const at = this.at;
    this.at += bytes;
    if (bytes === 0) return 0;
    if (bytes === 8) return Number(this.bytes.readBigUInt64BE(at));
    return this.bytes.readUIntBE(at, bytes);
  }
}

/** The boxes of a container, one behind the other; one that leads outside ends with it. */
export function* boxesIn(bytes: Buffer): Generator<Property> {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const size = bytes.readUInt32BE(at);
    const head = size === 1 ? 16 : 8;
    const length = size === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : size === 0 ? bytes.length - at : size;
    if (length < head) throw new RangeError('a box shorter than its head');
    yield { type: bytes.toString('latin1', at + 4, at + 8), body: bytes.subarray(at + head, at + length) };
    at += length;
  }
}

function readTypes({ body }: Property): Map<number, string> {
  const wide = body.readUInt8(0) > 0;
  const types = new Map<number, string>();
  for (const { type, body: entry } of boxesIn(body.subarray(wide ? 8 : 6))) {
    const version = entry.readUInt8(0);
    if (type !== 'infe' || version < 2) continue;
    const id = version === 2 ? entry.readUInt16BE(4) : entry.readUInt32BE(4);
    const at = version === 2 ? 8 : 10;
    types.set(id, entry.toString('latin1', at, at + 4));
  }
  return types;
}

type Location = Pick<Item, 'bytes' | 'complete' | 'data'>;

/** The bytes of the fields of `iloc`, of which the cursor is at the start; then it is at the number of items. */
export function readLocationWidths(cursor: Cursor) {
  const version = cursor.number(1);
  cursor.at = 4;
  const [sizes, more] = [cursor.number(1), cursor.number(1)];
  const [offsetBytes, lengthBytes, baseBytes] = [sizes >> 4, sizes & 15, more >> 4];
  const indexBytes = version === 0 ? 0 : more & 15;
  const [idBytes, methodBytes] = [version < 2 ? 2 : 4, version === 0 ? 0 : 2];
  return {
    ...{ idBytes, methodBytes, baseBytes, indexBytes, offsetBytes, lengthBytes },
    /** An item before the number of its extents. */
    itemBytes: idBytes + methodBytes + 2 + baseBytes,
    extentBytes: indexBytes + offsetBytes + lengthBytes,
  };
}

/** Item locations, in the file or in the box `idat`. */
function readLocations({ body }: Property, file: Buffer, idat: Buffer): Map<number, Location> {
  const cursor = new Cursor(body);
  const widths = readLocationWidths(cursor);
  const found = new Map<number, Location>();
  for (let left = cursor.number(widths.idBytes); left > 0; left -= 1) {
    const id = cursor.number(widths.idBytes);
    const method = cursor.number(widths.methodBytes) & 15;
    const source = [file, idat][method];
    const external = cursor.number(2) !== 0;
    const base = cursor.number(widths.baseBytes);
    const places: (readonly [from: number, to: number])[] = [];
    for (let extents = cursor.number(2); extents > 0; extents -= 1) {
      cursor.number(widths.indexBytes);
      const from = base + cursor.number(widths.offsetBytes);
      const length = cursor.number(widths.lengthBytes);
      places.push([from, length === 0 ? (source?.length ?? 0) : from + length]);
    }
    const bytes = places.reduce((sum, [from, to]) => sum + Math.max(0, to - from), 0);
    const end = external ? 0 : (source?.length ?? 0);
    const complete = places.every(([from, to]) => from <= to && to <= end);
    const data = () => {
      if (!source || !complete) throw new RangeError('data outside of the file');
      return Buffer.concat(places.map(([from, to]) => source.subarray(from, to)));
    };
    found.set(id, { bytes, complete, data });
  }
  return found;
}

function readProperties({ body }: Property): Map<number, Property[]> {
  const boxes = [...boxesIn(body)];
  const container = boxes.find(({ type }) => type === 'ipco');
  const known = container ? [...boxesIn(container.body)] : [];
  const found = new Map<number, Property[]>();
  let associations = 0;
  for (const { type, body: association } of boxes) {
    if (type !== 'ipma') continue;
    const cursor = new Cursor(association);
    const [version, flags] = [cursor.number(1), cursor.number(3)];
    const indexBytes = (flags & 1) === 0 ? 1 : 2;
    for (let left = cursor.number(4); left > 0; left -= 1) {
      const id = cursor.number(version < 1 ? 2 : 4);
      const properties = found.get(id) ?? [];
      for (let count = cursor.number(1); count > 0; count -= 1) {
        associations += 1;
        if (associations > maxAssociations) throw new RangeError('too many properties');
        const property = known[(cursor.number(indexBytes) & (indexBytes === 1 ? 0x7f : 0x7fff)) - 1];
        if (property) properties.push(property);
      }
      found.set(id, properties);
    }
  }
  return found;
}

function readReferences({ body }: Property): Reference[] {
  const idBytes = body.readUInt8(0) === 0 ? 2 : 4;
  let total = 0;
  return Array.from(boxesIn(body.subarray(4)), ({ type, body: reference }) => {
    const cursor = new Cursor(reference);
    const from = cursor.number(idBytes);
    const count = cursor.number(2);
    total += count;
    if (total > maxReferences) throw new RangeError('too many references');
    return { type, from, to: Array.from({ length: count }, () => cursor.number(idBytes)) };
  });
}

export function readItems(file: Buffer): Items {
  const meta = [...boxesIn(file)].find(({ type }) => type === 'meta');
  if (!meta) throw new RangeError('no box "meta"');
  const boxes = [...boxesIn(meta.body.subarray(4))];
  const needed = (type: string): Property => {
    const box = boxes.find((each) => each.type === type);
    if (!box) throw new RangeError(`no box "${type}"`);
    return box;
  };
  const idat = boxes.find(({ type }) => type === 'idat')?.body ?? Buffer.alloc(0);
  const locations = readLocations(needed('iloc'), file, idat);
  const properties = readProperties(needed('iprp'));
  const references = boxes.find(({ type }) => type === 'iref');
  const primary = needed('pitm').body;
  const nothing: Location = { bytes: 0, complete: true, data: () => Buffer.alloc(0) };
  const items = new Map<number, Item>();
  for (const [id, type] of readTypes(needed('iinf')))
    items.set(id, { type, properties: properties.get(id) ?? [], ...(locations.get(id) ?? nothing) });
  return {
    primary: primary.readUInt8(0) === 0 ? primary.readUInt16BE(4) : primary.readUInt32BE(4),
    items,
    references: references ? readReferences(references) : [],
  };
}
