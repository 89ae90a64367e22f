import { createHash } from 'node:crypto';
import type Keyv from 'keyv';
import { randomText } from './keys.ts';
import type { Vouched } from './operators.ts';

/** What the server remembers of somebody who is signed in. */
export interface Session {
  readonly accountId: string;
  /** Opened by a one-time link: by who sits at the machine, an operator. */
  readonly link?: true;
  /** Sent with every change, so that another site cannot make a visitor's browser send one. */
  readonly csrf: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Provider and ID token, to end the session there too, and what makes an operator or not. */
  readonly provider?: { readonly id: string; readonly idToken: string; readonly vouched: Vouched };
}

export interface SessionRules {
  /** Milliseconds without a request after which it ends. */
  readonly idleMs: number;
  /** Milliseconds after which it ends in any case. */
  readonly absoluteMs: number;
}

/** How far ahead of this machine's clock a session may lie; one further ahead is of a clock that has been set back. */
const aheadMs = 60_000;
/** How often the time of the last request is written at most, milliseconds. */
const touchMs = 60_000;

/** The cookie's value is not what lies in the store: who reads the store can open no session. */
const keyOf = (token: string) => createHash('sha256').update(token).digest('base64url');

/** How long it lasted nobody could say. Both times: seen now by a clock that is right, it may have been opened by another. */
const isAhead = ({ createdAt, lastSeenAt }: Session, now: number) =>
  Math.max(createdAt, lastSeenAt) > now + aheadMs;

/** Sign-in sessions, in any keyv store. */
export class Sessions {
  readonly #store: Keyv<Session>;
  readonly #rules: SessionRules;
  readonly #now: () => number;

  /** `now` gives Unix milliseconds. */
  constructor(store: Keyv<Session>, rules: SessionRules, now: () => number) {
    this.#store = store;
    this.#rules = rules;
    this.#now = now;
  }

  /** Opens a session and ends the one before it: what a visitor had before signing in is worth nothing after. */
  async open(
    who: Pick<Session, 'accountId' | 'link' | 'provider'>,
    before?: string,
  ): Promise<{ token: string; session: Session }> {
    if (before !== undefined) await this.end(before);
    const now = this.#now();
    const session: Session = { ...who, csrf: randomText(32), createdAt: now, lastSeenAt: now };
    const token = randomText(40);
    await this.#write(token, session);
    return { token, session };
  }

  /** The session behind a cookie; undefined when there is none any more. */
  async find(token: string): Promise<Session | undefined> {
    const session = await this.#store.get(keyOf(token));
    if (!session) return undefined;
    const now = this.#now();
    if (now >= this.expiresAt(session) || isAhead(session, now)) {
      await this.end(token);
      return undefined;
    }
    if (now - session.lastSeenAt < touchMs) return session;
    const seen = { ...session, lastSeenAt: now };
    // A store that is full must not sign people out: the next request writes it.
    return this.#write(token, seen).then(
      () => seen,
      () => session,
    );
  }

  async end(token: string): Promise<void> {
    await this.#store.delete(keyOf(token));
  }

  /** Unix milliseconds at which it ends when nothing more happens. */
  expiresAt({ createdAt, lastSeenAt }: Session): number {
    return Math.min(lastSeenAt + this.#rules.idleMs, createdAt + this.#rules.absoluteMs);
  }

  async #write(token: string, session: Session): Promise<void> {
    await this.#store.set(keyOf(token), session, Math.max(1, this.expiresAt(session) - this.#now()));
  }
}
