import { hash } from 'node:crypto';
import { SocketAddress } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { RateLimit } from './rate.ts';

/** Sources whose failures a process remembers; the oldest is forgotten first. */
export const mostSources = 10_000;

/**
 * Brute-force protection: counts failed attempts per source (an address, an account) in the windows of a rate and
 * returns how long the source has to wait. Successful attempts are not counted. Neither method ever rejects.
 *
 * Any number of attempts may be concurrent. A guard therefore calls, as soon as it knows the outcome and
 * before it answers, `failed` for a wrong attempt or `wait` for a right one. If either returns more than 0,
 * the caller learns only that. So at most `limit` wrong attempts of a window are answered as such.
 */
export class Attempts {
  readonly #windows: readonly RateLimit[];

  /** `own` counts at this node, `shared` at all of them; while that cannot, each node counts for itself. */
  constructor(own: RateLimit, shared?: RateLimit) {
    this.#windows = [own, ...(shared ? [shared] : [])].filter(({ limited }) => limited);
  }

  /** Whole seconds until the next attempt is allowed; 0: now. */
  wait(source: string): Promise<number> {
    return this.#count(source, 0);
  }

  /** Counts a failed attempt, unless it had to wait; returns what `wait` returned before, atomically. */
  failed(source: string): Promise<number> {
    return this.#count(source, 1);
  }

  async #count(source: string, failures: 0 | 1): Promise<number> {
    // Addresses are personal data, so Redis only holds their hashes.
    const name = hash('sha256', source, 'base64url');
    for (const windows of this.#windows) {
      const share = await windows.share(name, failures).catch(() => undefined);
      if (share && !share.taken && share.state.remaining === 0) return share.state.retryAfter;
    }
    return 0;
  }
}

/** Reports the outcome of an attempt; returns the seconds to wait, 0: the outcome may be answered. */
export const recordAttempt = (attempts: Attempts, source: string, right: boolean): Promise<number> =>
  right ? attempts.wait(source) : attempts.failed(source);

/**
 * The counted source of an address, which may have a port, as some proxies write it. IPv6 addresses count by /64, which one customer
 * has whole.
 */
export function attemptSourceOf(sent: string): string {
  const address = ipaddr.isValid(sent) ? sent : (SocketAddress.parse(sent)?.address ?? sent);
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}
