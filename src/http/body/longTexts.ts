import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';

/** Bytes of a text that is left to a parser: more than any option has. */
export const mostShortText = 4096;
/** Bytes of a long text that are decoded in a row, before others have their turn. */
export const pieceBytes = 1024 * 1024;
/** Bytes of the longest character, escaped. */
const longestCharacter = 12;

/** A text in the bytes of a body that is longer than `mostShortText`. */
export interface LongText {
  readonly end: number;
  /** Where its pieces begin, its own beginning first: no piece ends inside of a character or an escape. */
  readonly cuts: readonly number[];
}

/** Finds the long texts of a body, whose bytes it is given in their order. */
export class LongTextFinder {
  readonly found: LongText[] = [];
  #start = 0;
  #cuts: number[] = [];
  /** Where the next cut is due; compare before `cut` is called. */
  due = Number.POSITIVE_INFINITY;

  begin(at: number): void {
    this.#start = at;
    this.due = at + pieceBytes;
  }

  /** A cut is due and `at` is no part of an escape. `byte`: of the text's UTF-8, the one that begins there. */
  cut(at: number, byte: number): void {
    const insideCharacter = (byte & 0xc0) === 0x80;
    // What is no UTF-8 may go on like this for ever.
    if (insideCharacter && at < this.due + longestCharacter) return;
    this.#cuts.push(at);
    this.due = at + pieceBytes;
  }

  end(at: number): void {
    if (at - this.#start > mostShortText) this.found.push({ end: at, cuts: [this.#start, ...this.#cuts] });
    if (this.#cuts.length > 0) this.#cuts = [];
    this.due = Number.POSITIVE_INFINITY;
  }
}

export interface Shortened {
  /** The body with a short text in the place of each long one. */
  readonly bytes: Buffer;
  /** A value that was parsed from it, with the long texts in their places. */
  readonly restore: (value: unknown) => unknown;
}

/** A body that was looked at and may be parsed. */
export interface Scanned {
  /** It escapes characters beyond Latin-1, or beyond ASCII where they are UTF-8. */
  readonly wide: boolean;
  /** Rejects with SyntaxError where a long text is none. */
  readonly shorten: () => Promise<Shortened>;
}

/**
 * Takes the long texts out of a body, so that whatever parses the rest is done with it at once: a parser would hold everybody
 * up for as long as it takes with an image of 22 MB in base64. `decode` gives a piece of a text as it is meant; what it
 * throws ends this.
 */
export async function shorten(
  bytes: Buffer,
  long: readonly LongText[],
  decode: (piece: Buffer) => string,
): Promise<Shortened> {
  if (long.length === 0) return { bytes, restore: (value) => value };
  // Nobody can send a text that is taken for one of these.
  const stamp = randomUUID();
  const texts = new Map<string, string>();
  const rest: Buffer[] = [];
  let behind = 0;
  let decoded = 0;
  for (const { end, cuts } of long) {
    const pieces: string[] = [];
    for (const [i, cut] of cuts.entries()) {
      const piece = bytes.subarray(cut, cuts[i + 1] ?? end);
      decoded += piece.length;
      if (decoded > pieceBytes) {
        decoded = piece.length;
        await turn();
      }
      pieces.push(decode(piece));
    }
    const name = `${stamp}-${texts.size}`;
    texts.set(name, pieces.length === 1 ? (pieces[0] ?? '') : pieces.join(''));
    rest.push(bytes.subarray(behind, cuts[0]), Buffer.from(name));
    behind = end;
  }
  rest.push(bytes.subarray(behind));
  const restore = (value: unknown): unknown => {
    if (typeof value === 'string') return texts.get(value) ?? value;
    if (Array.isArray(value)) return value.map(restore);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, restore(inner)]));
  };
  return { bytes: Buffer.concat(rest), restore };
}
