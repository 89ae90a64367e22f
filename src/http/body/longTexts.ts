import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';

/** The maximum number of bytes of a text that is left to a parser; above the length of any option. */
export const maxShortText = 4096;
/** Bytes of a long text that are decoded before the event loop gets a turn. */
export const pieceBytes = 1024 * 1024;
/** Bytes of the longest escaped character. */
const longestCharacter = 12;

/** A text in a body's bytes that is longer than `maxShortText`. */
interface LongText {
  readonly end: number;
  /** Offsets of its pieces, from its beginning on: no piece ends within a character or an escape. */
  readonly cuts: readonly number[];
}

/** Finds the long texts of a body, whose bytes it receives in order. */
export class LongTextFinder {
  readonly found: LongText[] = [];
  #start = 0;
  #cuts: number[] = [];
  /** Offset at which the next cut is due; compare before calling `cut`. */
  due = Number.POSITIVE_INFINITY;

  begin(at: number): void {
    this.#start = at;
    this.due = at + pieceBytes;
  }

  /** Cuts at `at`, which is not within an escape. `byte`: the byte of the text's UTF-8 at this offset. */
  cut(at: number, byte: number): void {
    const insideCharacter = (byte & 0xc0) === 0x80;
    // Bounded, because invalid UTF-8 may never reach the end of a character.
    if (insideCharacter && at < this.due + longestCharacter) return;
    this.#cuts.push(at);
    this.due = at + pieceBytes;
  }

  end(at: number): void {
    if (at - this.#start > maxShortText) this.found.push({ end: at, cuts: [this.#start, ...this.#cuts] });
    if (this.#cuts.length > 0) this.#cuts = [];
    this.due = Number.POSITIVE_INFINITY;
  }
}

interface Shortened {
  /** The body with a short placeholder for each long text. */
  readonly bytes: Buffer;
  /** Puts the long texts into a value parsed from it. */
  readonly restore: (value: unknown) => unknown;
}

/** A scanned body that may be parsed. */
export interface Scanned {
  /** Contains escapes of characters beyond Latin-1, or beyond ASCII if they are UTF-8. */
  readonly wide: boolean;
  /** Rejects with SyntaxError if a long text is invalid. */
  readonly shorten: () => Promise<Shortened>;
}

/**
 * Replaces the long texts of a body by placeholders: a parser would block the event loop while it decodes an image of
 * 22 MB in base64. `decode` decodes a piece of a text; an error it throws rejects this.
 */
export async function shorten(
  bytes: Buffer,
  long: readonly LongText[],
  decode: (piece: Buffer) => string,
): Promise<Shortened> {
  if (long.length === 0) return { bytes, restore: (value) => value };
  // Random, so that no input can contain a placeholder.
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
