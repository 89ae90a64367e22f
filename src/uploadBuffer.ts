/** Initial size whatever length was announced, because announced bytes may never arrive. */
const first = 256 * 1024;

/** Smaller buffers stay: they cost little, and a parser may pass on one of its own, which it goes on using. */
const minFreed = 16 * 1024;

/**
 * Frees the memory of a buffer that nobody reads any more; the buffer is empty afterwards. The next garbage collection
 * would do it too, but until then the bytes count to the size at which V8 collects everything, and the next buffer
 * needs memory that the system has to provide first (decision 0214). Memory of which the buffer is only a part stays.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (length >= minFreed && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * Collects the bytes of a file as they arrive in pieces. Pieces are copied on arrival, so that no long copy
 * remains for the end and no piece keeps the socket's memory alive. A buffer of announced length is
 * reallocated once, while it is small. Memory beyond the received bytes is not touched.
 */
export class UploadBuffer {
  readonly #maxBytes: number;
  #bytes: Buffer | undefined;
  #size = 0;
  #expected: number;

  /** `expected`: bytes that were announced, 0 if unknown; `most`: bytes that `add` ever receives. */
  constructor(expected: number, maxBytes: number) {
    this.#expected = Math.min(expected || first, maxBytes);
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  add(piece: Buffer): void {
    const size = this.#size + piece.length;
    if (size > (this.#bytes?.length ?? 0)) this.#grow(size);
    this.#bytes?.set(piece, this.#size);
    this.#size = size;
  }

  take(): Buffer {
    return this.#bytes?.subarray(0, this.#size) ?? Buffer.alloc(0);
  }

  /** Frees the memory, also that of what `take` returned, which is empty afterwards. */
  free(): void {
    if (this.#bytes) freeBuffer(this.#bytes);
    this.#bytes = undefined;
    this.#size = 0;
  }

  #grow(needed: number): void {
    while (this.#expected < needed)
      this.#expected = Math.min(Math.max(needed, 2 * this.#expected), this.#maxBytes);
    const bytes = Buffer.allocUnsafeSlow(needed <= first ? Math.min(first, this.#expected) : this.#expected);
    if (this.#bytes) {
      bytes.set(this.#bytes.subarray(0, this.#size));
      freeBuffer(this.#bytes);
    }
    this.#bytes = bytes;
  }
}
