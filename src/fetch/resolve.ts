import { lookup, Resolver } from 'node:dns/promises';

/** All addresses of a host name; rejects or returns none if it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/**
 * Queries the name servers directly, without libuv's thread pool, so that slow look-ups do not delay image
 * decoding.
 */
export const resolveByDns: Resolve = async (hostname) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const lookups = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
};

/** Resolves names as the system does, its hosts file included; for hosts that the operator listed. */
export const resolveBySystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);
