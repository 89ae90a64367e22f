import { request } from 'undici';
import type { Config } from '../../config/readConfig.ts';
import { messageOf } from '../../errors.ts';
import { urlHere } from '../../http/server.ts';
import { type Finding, note, ok, problem } from './finding.ts';

const loopback = (host: string): boolean => ['127.0.0.1', '::1', 'localhost'].includes(host);

/** Checks the server with these settings on this machine, if one is running. */
export async function checkServer({ host, port }: Pick<Config['http'], 'host' | 'port'>): Promise<Finding[]> {
  const url = `${urlHere(host, port)}/health/ready`;
  let status: number;
  let said: { status?: unknown; errors?: readonly { readonly detail?: unknown }[] };
  try {
    const { statusCode, body } = await request(url, { signal: AbortSignal.timeout(3000) });
    status = statusCode;
    said = (await body.json()) as typeof said;
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ECONNREFUSED') return [ok('server', `No server runs on port ${port}.`)];
    return [
      problem(
        'server',
        `The program on port ${port} does not answer like Cutout (${messageOf(error)}).`,
        'Stop it, or set CUTOUT_PORT. If it is a Cutout server that hangs, see its log.',
      ),
    ];
  }
  if (said.status === 'ready') return [ok('server', `Ready on port ${port}.`)];
  const why = String(said.errors?.[0]?.detail ?? status);
  return [note('server', `On port ${port}, not ready: ${why}`, 'Its log says what it is waiting for.')];
}

/** Reports settings that may expose more than intended. */
export function checkExposure({ http, observe }: Pick<Config, 'http' | 'observe'>): Finding[] {
  const { host, publicUrl, proxies } = http;
  const { metricsPort, metricsHost, metricsToken } = observe;
  const findings: Finding[] = [];
  const found = (said: string, todo: string) => findings.push(note('exposure', said, todo));
  if (metricsPort !== undefined && !loopback(metricsHost) && metricsToken === undefined)
    found(
      `Anybody who reaches port ${metricsPort} of ${metricsHost} can read the metrics.`,
      'Set CUTOUT_METRICS_TOKEN, or restrict access to Prometheus.',
    );
  if (publicUrl?.startsWith('http:') && !loopback(new URL(publicUrl).hostname))
    found(
      'Keys and sessions are sent unencrypted.',
      'Put a TLS proxy in front and set CUTOUT_PUBLIC_URL=https://….',
    );
  if (publicUrl?.startsWith('https:') && proxies === 0)
    found(
      'All clients share the address of the proxy, so failed sign-ins of one client block those of all.',
      'Set CUTOUT_PROXIES=1, with a proxy that sets X-Forwarded-For.',
    );
  if (!loopback(host) && publicUrl === undefined)
    found(`The server listens on ${host} without TLS.`, 'Put a proxy in front (docs/operations.md#tls).');
  return findings;
}
