import { lookup, Resolver } from 'node:dns/promises';

/** All addresses of a host name; rejects or gives none when it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/**
 * Asks the name servers directly, without libuv's thread pool: names that resolve slowly must not keep
 * others' images from being decoded there.
 */
export const resolveByDns: Resolve = async (hostname) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};

/** As the machine itself resolves names, its hosts file included: for hosts the operator named. */
export const resolveBySystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);
