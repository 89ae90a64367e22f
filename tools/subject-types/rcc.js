// Files in a Qt resource collection (`rcc`), the format of some packages' images.
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

/** Bits of a node's flags. */
const COMPRESSED = 1;

/** The bytes of the file at `wanted`, a path inside the collection; it is stored uncompressed or deflated. */
export function fileInCollection(collection, wanted) {
  const all = readFileSync(collection);
  if (all.toString('latin1', 0, 4) !== 'qres')
    throw new Error(`${collection} is not a Qt resource collection`);
  const [version, tree, data, names] = [4, 8, 12, 16].map((at) => all.readUInt32BE(at));
  const nodeBytes = version >= 2 ? 22 : 14;

  function nameOf(node) {
    const at = names + all.readUInt32BE(node);
    // The length in characters and a hash, then UTF-16, big-endian.
    const text = Buffer.from(all.subarray(at + 6, at + 6 + 2 * all.readUInt16BE(at)));
    return text.swap16().toString('utf16le');
  }
  const flagsOf = (node) => all.readUInt16BE(node + 4);
  function childOf(folder, name) {
    const [count, first] = [all.readUInt32BE(folder + 6), all.readUInt32BE(folder + 10)];
    for (let child = first; child < first + count; child++) {
      const node = tree + child * nodeBytes;
      if (nameOf(node) === name) return node;
    }
    throw new Error(`${wanted} is not in ${collection}`);
  }

  const node = wanted.split('/').reduce(childOf, tree);
  if (flagsOf(node) & ~COMPRESSED) throw new Error(`${wanted} in ${collection} cannot be read`);
  const at = data + all.readUInt32BE(node + 10);
  const bytes = all.subarray(at + 4, at + 4 + all.readUInt32BE(at));
  // The deflated bytes are preceded by their inflated length.
  return flagsOf(node) & COMPRESSED ? inflateSync(bytes.subarray(4)) : bytes;
}
