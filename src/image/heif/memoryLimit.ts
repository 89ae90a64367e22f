const pageBytes = 65_536;
const memorySection = 5;

/** A copy of a WebAssembly module whose memory grows to `bytes` at most (core specification, section 5.5.8). */
export function withMemoryLimit(module: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const wasm = Uint8Array.from(module);
  let at = 8;
  const number = (): number => {
    let [value, shift, byte] = [0, 0, 0x80];
    for (; byte >= 0x80; shift += 7) {
      byte = wasm[at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
    }
    return value;
  };
  while (at < wasm.length) {
    const section = wasm[at++];
    const end = number() + at;
    if (section !== memorySection) {
      at = end;
      continue;
    }
    const [count, flags, least] = [number(), number(), number()];
    if (count !== 1 || flags !== 1) break;
    const from = at;
    const most = number();
    let pages = Math.min(most, Math.max(least, Math.ceil(bytes / pageBytes)));
    // In as many bytes as before: all but the last announce another one.
    for (let byte = from; byte < at; byte += 1, pages = Math.floor(pages / 128))
      wasm[byte] = (pages % 128) + (byte < at - 1 ? 0x80 : 0);
    return wasm;
  }
  throw new Error('The module has no memory of its own with a limit.');
}
