import { readFileSync } from 'node:fs';

const DYNAMIC = 6;
const VERSION_NEEDS = 0x6ffffffe;
const NEEDED = 1;

/** Processors as named in ELF headers. */
const machines = { 62: 'x64', 183: 'arm64' };

/**
 * What a 64-bit, little-endian ELF library needs of the system: other libraries, and versions of their symbols, e.g.
 * `{'libc.so.6': ['GLIBC_2.14', 'GLIBC_2.34']}`. undefined for any other file. Layout: System V gABI, chapter "Dynamic
 * Linking"; LSB, chapter "Symbol Versioning".
 * @returns {{cpu: string | undefined, libraries: string[], versions: Record<string, string[]>} | undefined}
 */
export function needsOf(file) {
  const bytes = readFileSync(file);
  if (bytes.length < 64 || bytes.toString('latin1', 0, 6) !== '\x7fELF\x02\x01') return undefined;
  const start = Number(bytes.readBigUInt64LE(40));
  const sections = Array.from({ length: bytes.readUInt16LE(60) }, (_, index) => {
    const at = start + index * bytes.readUInt16LE(58);
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 24)),
      size: Number(bytes.readBigUInt64LE(at + 32)),
      link: bytes.readUInt32LE(at + 40),
      count: bytes.readUInt32LE(at + 44),
    };
  });
  const text = (section, offset) => {
    const at = sections[section.link].offset + offset;
    return bytes.toString('latin1', at, bytes.indexOf(0, at));
  };
  const libraries = [];
  const versions = {};
  for (const section of sections) {
    if (section.type === DYNAMIC)
      for (let at = section.offset; at < section.offset + section.size; at += 16)
        if (bytes.readBigUInt64LE(at) === BigInt(NEEDED))
          libraries.push(text(section, Number(bytes.readBigUInt64LE(at + 8))));
    if (section.type !== VERSION_NEEDS) continue;
    for (let need = section.offset, left = section.count; left > 0; left--) {
      const names = [];
      let name = need + bytes.readUInt32LE(need + 8);
      for (let more = bytes.readUInt16LE(need + 2); more > 0; more--) {
        names.push(text(section, bytes.readUInt32LE(name + 8)));
        name += bytes.readUInt32LE(name + 12);
      }
      versions[text(section, bytes.readUInt32LE(need + 4))] = names;
      need += bytes.readUInt32LE(need + 12);
    }
  }
  return { cpu: machines[bytes.readUInt16LE(18)], libraries, versions };
}

const isNewer = (version, floor) => {
  const [major, minor] = version.split('.').map(Number);
  return major > floor[0] || (major === floor[0] && minor > floor[1]);
};

/** Versions of glibc's symbols that a file needs and that glibc `floor` does not have; for musl's libraries: none. */
export const tooNew = (file, floor) =>
  Object.values(needsOf(file)?.versions ?? {})
    .flat()
    .filter((name) => /^GLIBC_\d/.test(name) && isNewer(name.slice('GLIBC_'.length), floor));
