import { isIP } from 'node:net';

export interface HostOptions {
  /** Whose addresses are fetched: nobody's, those of listed hosts, or those of every public host as well. */
  readonly mode: 'off' | 'listed' | 'public';
  /** Hosts the operator trusts, `name` or `name:port`, as URLs write them: their addresses are not checked. */
  readonly allowHosts: readonly string[];
  /** Ports that are fetched from, unless a host is listed with its own. */
  readonly ports: readonly number[];
}

/** `listed`: fetched wherever it is. `public`: fetched if its address is public. `host`, `port`: not fetched, as it is another. */
type HostRule = 'listed' | 'public' | 'host' | 'port';

/** Which hosts and ports are fetched from. `hostname` may be written with or without the brackets of IPv6. */
export function createHostRule({ mode, allowHosts, ports }: HostOptions) {
  const listed = new Set(allowHosts);
  return (hostname: string, port: number): HostRule => {
    const name = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
    if (mode === 'off') return 'host';
    if (listed.has(`${name}:${port}`)) return 'listed';
    const usual = ports.includes(port);
    if (listed.has(name)) return usual ? 'listed' : 'port';
    if (mode === 'listed') return 'host';
    return usual ? 'public' : 'port';
  };
}

/** The port that a URL leads to. */
export const portOf = ({
  protocol,
  port,
}: {
  readonly protocol: string;
  readonly port?: string | null;
}): number => Number(port || (protocol === 'https:' ? 443 : 80));
