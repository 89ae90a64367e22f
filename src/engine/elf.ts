import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const headerBytes = 64;
const programHeaderBytes = 56;

/**
 * Whether a 64-bit ELF library is truncated: it ends before its segments or its section table do. The loader
 * maps such a file without an error and the process dies with SIGBUS at the first missing page, so an
 * interrupted copy must be detected beforehand. Anything else, a missing file included, returns false and is
 * left to the loader. Layout: System V gABI, chapters "ELF Header" and "Program Header".
 */
export function isTruncated(file: string): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return false;
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return false;
    const header = Buffer.alloc(headerBytes);
    if (readSync(descriptor, header, 0, headerBytes, 0) < headerBytes) return false;
    const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;
    if (!isElf64) return false;
    const offset = Number(header.readBigUInt64LE(32));
    const entryBytes = header.readUInt16LE(54);
    const count = header.readUInt16LE(56);
    if (entryBytes !== programHeaderBytes || offset + count * entryBytes > stat.size) return true;
    const sections = Number(header.readBigUInt64LE(40));
    if (sections + header.readUInt16LE(58) * header.readUInt16LE(60) > stat.size) return true;
    const table = Buffer.alloc(count * entryBytes);
    readSync(descriptor, table, 0, table.length, offset);
    for (let entry = 0; entry < table.length; entry += entryBytes) {
      const begin = Number(table.readBigUInt64LE(entry + 8));
      const bytes = Number(table.readBigUInt64LE(entry + 32));
      if (begin + bytes > stat.size) return true;
    }
    return false;
  } finally {
    closeSync(descriptor);
  }
}
