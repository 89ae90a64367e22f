/** Smaller buffers stay: they cost little, and a parser may pass on one of its own, which it goes on using. */
const minFreed = 16 * 1024;

/**
 * Frees the memory of a buffer that nobody reads any more; the buffer is empty afterwards. The next garbage collection
 * would do it too, but until then the bytes count to the size at which V8 collects everything, and the next buffer
 * needs memory that the system has to provide first (docs/decisions/0214). Memory of which the buffer is only a part stays.
 */
export function freeBuffer({ buffer, length }: Uint8Array): void {
  if (length >= minFreed && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
