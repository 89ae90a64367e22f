export interface ZipEntry {
  readonly name: string;
  /** 0: stored. */
  readonly method: number;
  readonly flags: number;
  readonly data: Buffer;
}

/** The entries as read by a program that starts from the front, as some clients do. Stored entries only. */
export function zipEntries(zip: Buffer): ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = 0; zip.readUInt32LE(at) === 0x04034b50; ) {
    const size = zip.readUInt32LE(at + 18);
    const nameEnd = at + 30 + zip.readUInt16LE(at + 26);
    const start = nameEnd + zip.readUInt16LE(at + 28);
    entries.push({
      name: zip.toString('latin1', at + 30, nameEnd),
      method: zip.readUInt16LE(at + 8),
      flags: zip.readUInt16LE(at + 6),
      data: zip.subarray(start, start + size),
    });
    at = start + size;
  }
  return entries;
}
