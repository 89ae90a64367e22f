import { crc32, inflateSync } from 'node:zlib';

/**
 * A strict PNG reader for 8-bit gray and RGBA, written from the specification: every CRC is checked, no bytes
 * after IEND, no bytes after the zlib stream, filter types 0 to 4 only.
 */
export interface DecodedPng {
  readonly width: number;
  readonly height: number;
  readonly colourType: number;
  readonly chunks: readonly { readonly type: string; readonly data: Buffer }[];
  readonly pixels: Buffer;
  readonly filters: readonly number[];
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function readChunks(file: Buffer): { type: string; data: Buffer }[] {
  if (!file.subarray(0, 8).equals(SIGNATURE)) throw new Error('no PNG signature');
  const chunks = [];
  let at = 8;
  while (at < file.length) {
    const size = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + size);
    if (crc32(file.subarray(at + 4, at + 8 + size)) !== file.readUInt32BE(at + 8 + size)) {
      throw new Error(`wrong CRC of ${type}`);
    }
    chunks.push({ type, data });
    at += 12 + size;
    if (type === 'IEND' && at !== file.length) throw new Error('bytes behind IEND');
  }
  return chunks;
}

/** Inflates a zlib stream that must end exactly where `stream` ends. */
export function inflateStrictly(stream: Buffer): Buffer {
  const result: unknown = inflateSync(stream, { info: true });
  const { buffer, engine } = result as { buffer: Buffer; engine: { bytesWritten: number } };
  if (engine.bytesWritten !== stream.length) throw new Error('bytes behind the zlib stream');
  return buffer;
}

function paeth(left: number, above: number, corner: number): number {
  const estimate = left + above - corner;
  const toLeft = Math.abs(estimate - left);
  const toAbove = Math.abs(estimate - above);
  const toCorner = Math.abs(estimate - corner);
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

export function decodePng(file: Buffer): DecodedPng {
  const chunks = readChunks(file);
  const head = chunks[0];
  if (head?.type !== 'IHDR' || head.data.length !== 13) throw new Error('no IHDR');
  const width = head.data.readUInt32BE(0);
  const height = head.data.readUInt32BE(4);
  const [depth, colourType = -1, compression, filtering, interlace] = head.data.subarray(8);
  if (depth !== 8 || compression !== 0 || filtering !== 0 || interlace !== 0) throw new Error('not plain');
  if (colourType !== 0 && colourType !== 6) throw new Error(`colour type ${colourType}`);
  const pixel = colourType === 6 ? 4 : 1;
  const size = width * pixel;
  const rows = inflateStrictly(
    Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)),
  );
  if (rows.length !== (size + 1) * height) throw new Error(`${rows.length} bytes of rows`);

  const pixels = Buffer.alloc(size * height);
  const filters: number[] = [];
  const read = (x: number, y: number) => (x < 0 || y < 0 ? 0 : (pixels[y * size + x] ?? 0));
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (size + 1)] ?? -1;
    filters.push(filter);
    for (let x = 0; x < size; x++) {
      const left = read(x - pixel, y);
      const above = read(x, y - 1);
      let predicted = 0;
      if (filter === 1) predicted = left;
      else if (filter === 2) predicted = above;
      else if (filter === 3) predicted = (left + above) >> 1;
      else if (filter === 4) predicted = paeth(left, above, x < pixel ? 0 : read(x - pixel, y - 1));
      else if (filter !== 0) throw new Error(`filter type ${filter}`);
      pixels[y * size + x] = (rows[y * (size + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return { width, height, colourType, chunks, pixels, filters };
}
