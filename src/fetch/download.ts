import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector, request } from 'undici';
import { isPublicAddress } from './address.ts';
import { type Resolve, resolveByDns, resolveBySystem } from './resolve.ts';

/** `reason` is public. It never tells an address, so that nobody can explore a network through it. */
export class DownloadError extends Error {
  override readonly name = 'DownloadError';
  /** `url`: not an address this service would fetch. `large`: too many bytes. `failed`: all else. */
  readonly kind: 'url' | 'large' | 'failed';
  readonly reason: string;

  constructor(kind: DownloadError['kind'], reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.reason = reason;
  }
}

/** Throws DownloadError, or the signal's reason. */
export type Download = (url: string, signal: AbortSignal) => Promise<Buffer>;

export interface DownloadOptions {
  /** Hosts (`name` or `name:port`) the operator trusts: their addresses are not checked. */
  readonly allowHosts: readonly string[];
  readonly maxBytes: number;
  readonly connectTimeoutMs: number;
  /** For everything together, redirects included. */
  readonly totalTimeoutMs: number;
  readonly maxRedirects: number;
  readonly resolve: Resolve;
  readonly isAllowedAddress: (address: string) => boolean;
}

/** CONTRACT section 3.1. */
export const downloadRules: DownloadOptions = {
  allowHosts: [],
  maxBytes: 22 * 1024 * 1024,
  connectTimeoutMs: 5000,
  totalTimeoutMs: 15_000,
  maxRedirects: 5,
  resolve: resolveByDns,
  isAllowedAddress: isPublicAddress,
};

const notPublic = () => new DownloadError('failed', 'The host has no public address.');

function checkUrl(text: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch (error) {
    throw new DownloadError('url', 'The address is not a URL.', error);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new DownloadError('url', 'Only http and https addresses are fetched.');
  if (url.username !== '' || url.password !== '')
    throw new DownloadError('url', 'An address with a user name or password is not fetched.');
  return url;
}

/** Whether an address is of a kind that is fetched at all; where it leads is checked when it is fetched. */
export function isFetchable(text: string): boolean {
  try {
    checkUrl(text);
    return true;
  } catch {
    return false;
  }
}

/** net.connect asks this for addresses and connects to one of those it is given: no second look-up. */
function lookupWith(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  return (hostname, _options, callback) => {
    const checked = async () => {
      const addresses = await resolve(hostname);
      if (addresses.length === 0 || !addresses.every(isAllowed)) throw notPublic();
      return addresses.map((address) => ({ address, family: isIP(address) }));
    };
    checked().then(
      (addresses) => callback(null, addresses),
      (error: unknown) => callback(error instanceof DownloadError ? error : notPublic(), []),
    );
  };
}

/**
 * Connects only where the rules allow. A numeric host is never looked up, hence the check before; the one
 * after sees where the socket really ended.
 */
function guardedConnector(options: DownloadOptions): buildConnector.connector {
  const { allowHosts, connectTimeoutMs: timeout, resolve, isAllowedAddress } = options;
  const common = { timeout, autoSelectFamily: true };
  const guarded = buildConnector({ ...common, lookup: lookupWith(resolve, isAllowedAddress) });
  const trusted = buildConnector({ ...common, lookup: lookupWith(resolveBySystem, () => true) });
  return (target, callback) => {
    const { hostname, host = hostname } = target;
    const bare = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
    if (allowHosts.includes(host) || allowHosts.includes(bare)) return trusted(target, callback);
    if (isIP(hostname) !== 0 && !isAllowedAddress(hostname)) return callback(notPublic(), null);
    guarded(target, (error, socket) => {
      if (error) return callback(error, null);
      if (isAllowedAddress(socket.remoteAddress ?? '')) return callback(null, socket);
      socket.destroy();
      callback(notPublic(), null);
    });
  };
}

/** Public wording of whatever went wrong below. */
function asDownloadError(error: unknown): DownloadError {
  if (error instanceof DownloadError) return error;
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  const name = error instanceof Error ? error.name : '';
  const timedOut =
    name === 'TimeoutError' ||
    code === 'ETIMEDOUT' ||
    /^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(String(code));
  if (timedOut) return new DownloadError('failed', 'The host did not answer in time.', error);
  if (typeof code === 'string' && /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code))
    return new DownloadError('failed', 'The certificate of the host is not valid.', error);
  return new DownloadError('failed', 'The connection to the host failed.', error);
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

async function follow(
  start: URL,
  agent: Agent,
  signal: AbortSignal,
  options: DownloadOptions,
): Promise<Buffer> {
  const { maxBytes, maxRedirects, totalTimeoutMs } = options;
  let url = start;
  for (let hop = 0; ; hop++) {
    const answer = await request(url, {
      dispatcher: agent,
      signal,
      headersTimeout: totalTimeoutMs,
      bodyTimeout: totalTimeoutMs,
      headers: { accept: 'image/*,*/*;q=0.5', 'accept-encoding': 'identity', 'user-agent': 'Cutout' },
    });
    const { statusCode, headers, body } = answer;
    // Bodies that nobody wants are cut off, not read.
    const drop = () => body.on('error', () => {}).destroy();
    if (redirects.has(statusCode) && typeof headers['location'] === 'string') {
      drop();
      if (hop === maxRedirects) throw new DownloadError('failed', `More than ${maxRedirects} redirects.`);
      try {
        url = checkUrl(headers['location'], url);
      } catch (error) {
        throw new DownloadError('failed', 'The host redirects to an address that is not fetched.', error);
      }
      continue;
    }
    if (statusCode !== 200) {
      drop();
      throw new DownloadError('failed', `HTTP Status ${statusCode}`);
    }
    if (Number(headers['content-length'] ?? 0) > maxBytes) {
      drop();
      throw new DownloadError('large', 'The file is too large.');
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) throw new DownloadError('large', 'The file is too large.');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, size);
  }
}

/** Downloads in memory, under rules that keep a caller from reaching into the network of the service. */
export function createDownload(options: DownloadOptions): Download {
  return async (text, signal) => {
    signal.throwIfAborted();
    const url = checkUrl(text);
    // One agent a download: no connection, and so no earlier check, is used twice.
    const agent = new Agent({ connect: guardedConnector(options) });
    const limit = AbortSignal.timeout(options.totalTimeoutMs);
    try {
      return await follow(url, agent, AbortSignal.any([signal, limit]), options);
    } catch (error) {
      signal.throwIfAborted();
      throw asDownloadError(error);
    } finally {
      await agent.destroy();
    }
  };
}
