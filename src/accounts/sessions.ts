import type Keyv from 'keyv';
import { hashKey, randomText } from './keyFormat.ts';
import type { Vouched } from './operators.ts';

/** Server-side state of a signed-in browser. */
export interface Session {
  readonly accountId: string;
  /** Opened by a one-time link, that is by an operator at the machine. */
  readonly link?: true;
  /** Sent with every change; protects against cross-site request forgery. */
  readonly csrf: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** Provider and ID token, for signing out there too, and what the operator rules need. */
  readonly provider?: { readonly id: string; readonly idToken: string; readonly vouched: Vouched };
}

/** A session ends after two hours without a request. */
export const idleMs = 7_200_000;
/** It ends after twelve hours in any case: what rights a provider vouched for is as old as the session. */
const absoluteMs = 43_200_000;

/** Milliseconds that a session may be ahead of this machine's clock; beyond that, a clock has been set back. */
const aheadMs = 60_000;
/** The minimum number of milliseconds between two updates of the time of the last request. */
const touchMs = 60_000;

/** The store holds only a hash of the cookie's value: reading the store does not allow opening a session. */
const keyOf = (token: string) => hashKey(token).toString('base64url');

/** Its age is unknown. Both times count: a wrong clock may have opened it, and a right one seen it. */
const isAhead = ({ createdAt, lastSeenAt }: Session, now: number) =>
  Math.max(createdAt, lastSeenAt) > now + aheadMs;

export class Sessions {
  readonly #store: Keyv<Session>;
  readonly #now: () => number;

  /** `now` returns Unix milliseconds. */
  constructor(store: Keyv<Session>, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Opens a session and ends the previous one of this browser, which protects against session fixation. */
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

  /** The session of a cookie; undefined if it has ended. */
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
    // A full store must not sign people out: the next request writes it again.
    return this.#write(token, seen).then(
      () => seen,
      () => session,
    );
  }

  async end(token: string): Promise<void> {
    await this.#store.delete(keyOf(token));
  }

  /** Unix milliseconds at which it ends without further requests. */
  expiresAt({ createdAt, lastSeenAt }: Session): number {
    return Math.min(lastSeenAt + idleMs, createdAt + absoluteMs);
  }

  async #write(token: string, session: Session): Promise<void> {
    await this.#store.set(keyOf(token), session, Math.max(1, this.expiresAt(session) - this.#now()));
  }
}
