const SIGNATURE = '\x89PNG\r\n\x1a\n';
/** Kinds of chunks whose content libvips inflates while it reads the header. As numbers: a file may have millions. */
const [ZTXT, ITXT] = [0x7a545874, 0x69545874] as const;
/** Bytes of them in one file that may stay: they become a thousand times as many at most. */
const MOST_BYTES = 16 * 1024;

/**
 * The file without the texts of a PNG that may be compressed, where it has more of them than a picture needs; otherwise
 * the same bytes. Nothing of a result depends on them, and a megabyte of file can hold gigabytes of text.
 */
export function withoutTexts(file: Uint8Array): Uint8Array {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.toString('latin1', 0, SIGNATURE.length) !== SIGNATURE) return file;
  const kept: Buffer[] = [];
  let from = 0;
  let texts = 0;
  for (let at = SIGNATURE.length; at + 12 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const next = at + 12 + length;
    const type = bytes.readUInt32BE(at + 4);
    if (type === ZTXT || type === ITXT) {
      texts += length;
      if (at > from) kept.push(bytes.subarray(from, at));
      from = next;
    }
    at = next;
  }
  if (texts <= MOST_BYTES) return file;
  return Buffer.concat([...kept, bytes.subarray(Math.min(from, bytes.length))]);
}
