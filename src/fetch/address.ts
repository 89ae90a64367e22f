import { lookup, Resolver } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * Public addresses at which a cloud's metadata service answers its own machines. Those of other clouds are
 * link-local (169.254.169.254), private (fd00:ec2::254), shared (100.100.100.200) or reserved (192.0.0.192).
 */
const cloudAddresses: ReadonlySet<string> = new Set(['168.63.129.16']);

/** RFC 5214: the interface identifier is 0000:5efe or 0200:5efe, followed by an IPv4 address. */
const isIsatap = (parts: readonly number[]): boolean =>
  ((parts[4] ?? 0) & ~0x0200) === 0 && parts[5] === 0x5efe;

/**
 * Whether an address is on the public internet. False for loopback, private, link-local, shared (CGNAT),
 * multicast, documentation, benchmarking and reserved ranges, for every IPv6 form that embeds an IPv4 address
 * (mapped, compatible, translated, 6to4, Teredo, ISATAP), for addresses with a zone, and for `cloudAddresses`.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast' || cloudAddresses.has(parsed.toString())) return false;
  if (parsed instanceof ipaddr.IPv4) return ipaddr.IPv4.isValidFourPartDecimal(address);
  // Global unicast is assigned from 2000::/3 only; ipaddr.js calls everything it does not know unicast.
  return (
    parsed.zoneId === undefined && !isIsatap(parsed.parts) && ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000
  );
}

/** Addresses of all network interfaces of this machine, as they are now. */
export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((addresses) => addresses?.map(({ address }) => address) ?? []);

/** Whether an address is public and belongs to another machine. `own` is called each time, because addresses change. */
export const isPublicElsewhere =
  (own: () => readonly string[] = ownAddresses) =>
  (address: string): boolean => {
    if (!isPublicAddress(address)) return false;
    const wanted = ipaddr.parse(address).toString();
    return !own().some((mine) => ipaddr.isValid(mine) && ipaddr.parse(mine).toString() === wanted);
  };

/** All addresses of a host name; rejects or returns none if it has none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** Queries the name servers without libuv's thread pool, so that slow look-ups do not delay image decoding. */
export const resolveByDns: Resolve = async (hostname) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const lookups = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
};

/** Resolves names as the system does, its hosts file included; for hosts that the operator listed. */
export const resolveBySystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);
