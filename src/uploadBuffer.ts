/** What every length begins with: who announces many bytes has not sent them. */
const first = 256 * 1024;

/**
 * Bytes of a file that arrive in pieces, put together as they come: nothing is left to be copied at the end, which
 * would hold up everybody else, and no piece keeps the socket's memory. What was expected is moved once, while it is
 * small. Memory beyond what has arrived is not touched.
 */
export class UploadBuffer {
  readonly #most: number;
  #bytes: Buffer | undefined;
  #size = 0;
  #expected: number;

  /** `expected`: bytes that should come at most, 0 when nobody said; `most`: that are ever given to `add`. */
  constructor(expected: number, most: number) {
    this.#expected = Math.min(expected || first, most);
    this.#most = most;
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

  #grow(least: number): void {
    while (this.#expected < least) this.#expected = Math.min(Math.max(least, 2 * this.#expected), this.#most);
    const bytes = Buffer.allocUnsafeSlow(least <= first ? Math.min(first, this.#expected) : this.#expected);
    if (this.#bytes) bytes.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = bytes;
  }
}
