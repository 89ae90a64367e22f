import { isIP } from 'node:net';

export interface HostOptions {
  /** Hosts that are fetched from: none, the listed ones, or every public one as well. */
  readonly mode: 'off' | 'listed' | 'public';
  /** Hosts the operator trusts, `name` or `name:port` as in URLs: their addresses are not checked. */
  readonly allowHosts: readonly string[];
  /** Ports that are fetched from, unless a host is listed with its own. */
  readonly ports: readonly number[];
}

/** `listed`: fetched at any address. `public`: at a public one. `denied-host`, `denied-port`: not fetched. */
type HostRule = 'listed' | 'public' | 'denied-host' | 'denied-port';

/** Returns the rule for a host and port. `hostname` may have the brackets of IPv6. */
export function createHostRule({ mode, allowHosts, ports }: HostOptions) {
  const listed = new Set(allowHosts);
  return (hostname: string, port: number): HostRule => {
    const name = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
    if (mode === 'off') return 'denied-host';
    if (listed.has(`${name}:${port}`)) return 'listed';
    const usual = ports.includes(port);
    if (listed.has(name)) return usual ? 'listed' : 'denied-port';
    if (mode === 'listed') return 'denied-host';
    return usual ? 'public' : 'denied-port';
  };
}

/** The port of a URL, explicit or by its scheme. */
export const portOf = ({
  protocol,
  port,
}: {
  readonly protocol: string;
  readonly port?: string | null;
}): number => Number(port || (protocol === 'https:' ? 443 : 80));
