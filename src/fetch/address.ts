import ipaddr from 'ipaddr.js';

/**
 * True for addresses of the public internet alone. Not for loopback, private, link-local, shared (CGNAT),
 * multicast, documentation, benchmarking and reserved ranges, nor for any IPv6 form that carries an IPv4
 * address (mapped, compatible, translated, 6to4, Teredo), nor for one with a zone.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  if (parsed instanceof ipaddr.IPv4) return ipaddr.IPv4.isValidFourPartDecimal(address);
  // Global unicast is assigned from 2000::/3 only; ipaddr.js calls everything it does not know unicast.
  return parsed.zoneId === undefined && ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000;
}
