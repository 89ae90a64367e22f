export interface MemoryBounds {
  /** Bytes for everything that comes and goes with requests. */
  readonly room: number;
  /** Bytes that the largest piece of work may need: bodies and answers leave them free where they can. */
  readonly largestWork: number;
  /** Bytes that the largest legal body takes while it is read: it gets them where nothing else goes on, in half the room. */
  readonly largestBody?: number;
}

/** Bytes that one request holds: its body or what it downloads, later its answer. */
export interface Hold {
  /** It has become so many; those are there already, so they count whether there is room or not. */
  resize(bytes: number): void;
  /** Asks for so many more, that are not there yet; false, and nothing changed, when there is no room for them now. */
  grow(bytes: number): boolean;
  /** Any number of times. */
  release(): void;
}

interface MemoryStats {
  readonly room: number;
  /** Bodies and downloads being read or waiting, and answers being sent. */
  readonly held: number;
  /** Set aside for work under way. */
  readonly working: number;
  /** Bodies and downloads that were refused for want of room. */
  readonly refused: number;
}

/** An account that holds something may grow while its total is at most `greed` × the bytes left free. */
const greed = 3;
/** Bodies may take this much at least. */
const leastHeld = 100e6;
/** With less room than this nothing sensible can be done. */
export const leastRoom = 1.5 * leastHeld;
/** Bodies that may take so much take the largest one, which grows while it is read, and is not too greedy then. */
const heldFor = (largestBody: number): number => Math.ceil((largestBody * (greed + 1)) / greed);
/** With less room than this the largest legal body may be refused although nothing else goes on. */
export const roomFor = (largestBody: number): number => 2 * heldFor(largestBody);

/**
 * The bytes that requests may take at a time (docs/decisions/0151). What waits holds its body and lasts, so bodies and
 * answers leave room for the largest piece of work, and half of all in any case: work can always go on, and frees what
 * waits. Among accounts nobody can take all of it (docs/decisions/0171): one alone holds three quarters at most, each of
 * two three sevenths, and who holds nothing yet gets whatever is free.
 */
export class MemoryBudget {
  #room = Number.POSITIVE_INFINITY;
  #mostHeld = Number.POSITIVE_INFINITY;
  readonly #listeners: (() => void)[] = [];
  #held = 0;
  readonly #heldBy = new Map<string, number>();
  #working = 0;
  #refused = 0;

  /** Until then there is no bound. */
  bound({ room, largestWork, largestBody = 75e6 }: MemoryBounds): void {
    this.#room = room;
    const wanted =
      room < roomFor(largestBody) ? room - largestWork : Math.max(room - largestWork, heldFor(largestBody));
    this.#mostHeld = Math.max(leastHeld, Math.min(room / 2, wanted));
  }

  get stats(): MemoryStats {
    return { room: this.#room, held: this.#held, working: this.#working, refused: this.#refused };
  }

  /** Most bytes that a piece of work can count on. */
  get mostWork(): number {
    return this.#room === Number.POSITIVE_INFINITY ? this.#room : Math.max(0, this.#room - this.#mostHeld);
  }

  /** For a body of an account that is about to be read; undefined when there is no room for it now. */
  hold(account: string, bytes: number): Hold | undefined {
    if (!this.#admits(account, bytes)) return undefined;
    let own = 0;
    const resize = (next: number) => {
      const more = next - own;
      own = next;
      this.#held += more;
      const all = (this.#heldBy.get(account) ?? 0) + more;
      if (all > 0) this.#heldBy.set(account, all);
      else this.#heldBy.delete(account);
      if (more < 0) this.#tell();
    };
    resize(bytes);
    const grow = (more: number) => {
      if (!this.#admits(account, more)) return false;
      resize(own + more);
      return true;
    };
    return { resize, grow, release: () => resize(0) };
  }

  #admits(account: string, bytes: number): boolean {
    const held = this.#held + bytes;
    const before = this.#heldBy.get(account) ?? 0;
    const greedy = before > 0 && before + bytes > greed * (this.#mostHeld - held);
    const admitted = !greedy && held <= this.#mostHeld && held + this.#working <= this.#room;
    if (!admitted) this.#refused++;
    return admitted;
  }

  /** For a piece of work; undefined when there is no room now. What it gives frees them, any number of times. */
  work(bytes: number): (() => void) | undefined {
    if (this.#held + this.#working + bytes > this.#room) return undefined;
    this.#working += bytes;
    let own = bytes;
    return () => {
      this.#working -= own;
      if (own > 0) this.#tell();
      own = 0;
    };
  }

  /** Calls `listener` whenever bytes are freed. */
  onFreed(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
