/** Receives the bytes of one part. */
export interface Sink {
  readonly write: (piece: Buffer) => void;
  readonly end: () => void;
}

/** Receives the parts of a form, in order. What either function throws ends the reading. */
export interface PartReceiver {
  /** Called once for every part, also for one that ends within its headers. */
  count(): void;
  /**
   * The headers of the part that was counted last, as Latin-1. Must throw if they are longer than the limit given to the
   * reader: they are then cut off there.
   */
  open(headers: string): Sink;
}

const lineEnd = '\r\n';
const headersEnd = '\r\n\r\n';

/**
 * Splits a multipart body (RFC 2046, section 5.1), whose pieces it receives in order, into parts. Copies nothing but
 * headers: pieces of a part are passed on as views. Takes time in proportion to the bytes.
 */
export class PartReader {
  readonly #delimiter: Buffer;
  readonly #maxHeaders: number;
  readonly #to: PartReceiver;
  #in: 'preamble' | 'headers' | 'part' | 'epilogue' = 'preamble';
  #headers = '';
  #sink: Sink | undefined;
  /**
   * Bytes of the delimiter at the end of what was read; they are passed on when the next piece shows that they are none of
   * it. A body begins as if a line had ended before.
   */
  #matched = lineEnd.length;

  /** `boundary` must contain no CR; `maxHeaders`: most characters of the headers of one part. */
  constructor(boundary: string, maxHeaders: number, to: PartReceiver) {
    this.#delimiter = Buffer.from(`${lineEnd}--${boundary}`);
    this.#maxHeaders = maxHeaders;
    this.#to = to;
  }

  /** Whether the last delimiter was read. */
  get complete(): boolean {
    return this.#in === 'epilogue';
  }

  write(piece: Buffer): void {
    if (this.complete) return;
    let from = this.#continueMatch(piece);
    if (this.#matched > 0) return;
    const delimiter = this.#delimiter;
    for (;;) {
      const at = piece.indexOf(delimiter, from);
      if (at === -1) break;
      this.#content(piece.subarray(from, at));
      if (this.complete) return;
      this.#delimited();
      from = at + delimiter.length;
    }
    this.#matched = this.#matchAtEnd(piece, from);
    this.#content(piece.subarray(from, piece.length - this.#matched));
  }

  /** Compares the rest of a delimiter that may have begun before. Returns the offset up to which `piece` was read. */
  #continueMatch(piece: Buffer): number {
    if (this.#matched === 0) return 0;
    const delimiter = this.#delimiter;
    const matched = this.#matched;
    const end = Math.min(delimiter.length, matched + piece.length);
    if (piece.compare(delimiter, matched, end, 0, end - matched) === 0) {
      this.#matched = end % delimiter.length;
      if (this.#matched === 0) this.#delimited();
      return end - matched;
    }
    this.#matched = 0;
    // No delimiter begins within these bytes: it would begin with their only CR.
    this.#content(delimiter.subarray(0, matched));
    return 0;
  }

  /** Bytes of the delimiter that `piece` ends with, from the offset `from` on. */
  #matchAtEnd(piece: Buffer, from: number): number {
    const delimiter = this.#delimiter;
    const tail = piece.subarray(Math.max(from, piece.length - delimiter.length + 1));
    // As a delimiter contains one CR, at its beginning, only the last one can begin it.
    const at = tail.lastIndexOf(lineEnd.charCodeAt(0));
    if (at === -1) return 0;
    const length = tail.length - at;
    return tail.compare(delimiter, 0, length, at) === 0 ? length : 0;
  }

  #content(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (this.#in === 'part') this.#sink?.write(bytes);
    else if (this.#in === 'headers') this.#readHeaders(bytes);
  }

  #readHeaders(bytes: Buffer): void {
    const before = this.#headers.length;
    const most = this.#maxHeaders + headersEnd.length - before;
    const inside = bytes.indexOf(headersEnd);
    this.#headers += bytes.toString(
      'latin1',
      0,
      inside === -1 ? most : Math.min(inside + headersEnd.length, most),
    );
    // Two dashes behind a delimiter make it the last one.
    if (before < 2 && this.#headers.startsWith('--')) {
      this.#in = 'epilogue';
      return;
    }
    const end = this.#headers.indexOf(headersEnd, Math.max(0, before - headersEnd.length + 1));
    if (end === -1 && this.#headers.length <= this.#maxHeaders) return;
    this.#to.count();
    this.#sink = this.#to.open(end === -1 ? this.#headers : this.#headers.slice(0, end));
    this.#in = 'part';
    this.#content(bytes.subarray(end + headersEnd.length - before));
  }

  #delimited(): void {
    if (this.#in === 'part') this.#sink?.end();
    // A part that ended within its headers carries nothing.
    else if (this.#in === 'headers') this.#to.count();
    this.#sink = undefined;
    this.#headers = '';
    this.#in = 'headers';
  }
}
