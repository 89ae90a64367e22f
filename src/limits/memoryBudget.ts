import { once, retained } from './retained.ts';

export interface MemoryBounds {
  /** Bytes for everything that is allocated per request. */
  readonly room: number;
  /** Bytes of the largest job: bodies and answers leave them free where they can. */
  readonly largestWork: number;
  /** Bytes of the largest allowed body while it is read; within half the room it is accepted if nothing else is held. */
  readonly largestBody?: number;
}

/** Memory held by one request: its body or download, later its answer. */
export interface MemoryReservation {
  /** Sets the size to bytes that are allocated already, whether or not there is room. */
  resize(bytes: number): void;
  /** Asks for more bytes before they are allocated; false, and nothing changes, if there is no room. */
  grow(bytes: number): boolean;
  /** `resize` does nothing and `grow` is false from then on; all is given back once nothing retains it. Idempotent. */
  release(): void;
  /** What is held stays counted until the returned function is called (idempotent), even after `release`. */
  retain(): () => void;
}

/** An account that holds something may grow while its total is at most 3 × the bytes still free. */
const maxMultipleOfFree = 3;
/** The minimum number of bytes that bodies may take together. */
const minHeld = 100e6;
/** The service needs at least this much room. */
export const minRoom = 1.5 * minHeld;
/** Bytes that bodies must be able to take for the largest one to be accepted while it grows within `maxMultipleOfFree`. */
const heldFor = (largestBody: number): number =>
  Math.ceil((largestBody * (maxMultipleOfFree + 1)) / maxMultipleOfFree);
/** The room in bytes below which the largest allowed body may be refused even if nothing else is held. */
export const roomForBody = (largestBody: number): number => 2 * heldFor(largestBody);

/**
 * Bounds the bytes of all requests together (decision 0151). Waiting requests hold their bodies, so
 * bodies and answers leave room for the largest job, and half of the room in any case: jobs can always
 * proceed, and free what waits. No account can take everything (decision 0171): one alone holds at most
 * three quarters, each of two three sevenths, and an account that holds nothing gets whatever is free.
 */
export class MemoryBudget {
  #room = Number.POSITIVE_INFINITY;
  #maxHeld = Number.POSITIVE_INFINITY;
  readonly #listeners: (() => void)[] = [];
  #held = 0;
  readonly #heldBy = new Map<string, number>();
  #working = 0;

  /** There is no bound before this call. */
  bound({ room, largestWork, largestBody = 75e6 }: MemoryBounds): void {
    this.#room = room;
    const wanted =
      room < roomForBody(largestBody)
        ? room - largestWork
        : Math.max(room - largestWork, heldFor(largestBody));
    this.#maxHeld = Math.max(minHeld, Math.min(room / 2, wanted));
  }

  /** Bytes. `held`: of bodies and downloads, and of answers being sent; `working`: reserved for running jobs. */
  get stats() {
    return { room: this.#room, held: this.#held, working: this.#working };
  }

  /** Bytes that a job can count on. */
  get maxWork(): number {
    return this.#room === Number.POSITIVE_INFINITY ? this.#room : Math.max(0, this.#room - this.#maxHeld);
  }

  /** Reserves memory for an upload or a download of an account that is about to be read; undefined if there is no room. */
  reserveUpload(account: string, bytes: number): MemoryReservation | undefined {
    if (!this.#admits(account, bytes)) return undefined;
    let own = 0;
    let released = false;
    const setSize = (next: number) => {
      const more = next - own;
      own = next;
      this.#held += more;
      const all = (this.#heldBy.get(account) ?? 0) + more;
      if (all > 0) this.#heldBy.set(account, all);
      else this.#heldBy.delete(account);
      if (more < 0) this.#notify();
    };
    setSize(bytes);
    const resize = (next: number) => {
      if (!released) setSize(next);
    };
    const grow = (more: number) => {
      if (released || !this.#admits(account, more)) return false;
      resize(own + more);
      return true;
    };
    const { end, retain } = retained(() => setSize(0));
    const release = () => {
      released = true;
      end();
    };
    return { resize, grow, release, retain };
  }

  #admits(account: string, bytes: number): boolean {
    const held = this.#held + bytes;
    const before = this.#heldBy.get(account) ?? 0;
    const greedy = before > 0 && before + bytes > maxMultipleOfFree * (this.#maxHeld - held);
    return !greedy && held <= this.#maxHeld && held + this.#working <= this.#room;
  }

  /** Memory for a job; undefined if there is no room. Returns what releases it (idempotent). */
  reserveJob(bytes: number): (() => void) | undefined {
    if (this.#held + this.#working + bytes > this.#room) return undefined;
    this.#working += bytes;
    return once(() => {
      this.#working -= bytes;
      this.#notify();
    });
  }

  /** Calls `listener` whenever bytes are freed. */
  onFreed(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
