import { isIP, type LookupFunction, type Socket } from 'node:net';
import { Agent, buildConnector, request } from 'undici';
import { maxFileBytes } from '../inputLimits.ts';
import { UploadBuffer } from '../uploadBuffer.ts';
import { isPublicElsewhere, type Resolve, resolveByDns, resolveBySystem } from './address.ts';
import { DownloadError, type DownloadFault } from './error.ts';
import { createHostRule, type HostOptions, portOf } from './hosts.ts';

/** Asks for memory for `bytes` more; false if there is none. */
export type Room = (bytes: number) => boolean;

export type Downloader = ReturnType<typeof createDownloader>;

export interface DownloadOptions extends HostOptions {
  readonly maxBytes: number;
  readonly connectTimeoutMs: number;
  /** Covers everything together, redirects included. */
  readonly totalTimeoutMs: number;
  readonly maxRedirects: number;
  readonly resolve: Resolve;
  /** Checked for hosts that are not listed. */
  readonly isAllowedAddress: (address: string) => boolean;
}

/** Rules of docs/contract.md section 3.1. */
export const downloadRules: DownloadOptions = {
  mode: 'public',
  allowHosts: [],
  ports: [80, 443],
  maxBytes: maxFileBytes,
  connectTimeoutMs: 5000,
  totalTimeoutMs: 15_000,
  maxRedirects: 5,
  resolve: resolveByDns,
  isAllowedAddress: isPublicElsewhere(),
};

/** Bytes that memory is asked for at a time. */
const step = 256 * 1024;

/**
 * Bytes of a connection for each byte of the body, and beside: heads and the frames of chunks. What has more is informational
 * answers, headers or tiny chunks without end, of which each takes work and brings nothing.
 */
const maxWireFactor = 1.5;
const maxHeadBytes = 160 * 1024;

/** What has arrived of a body, and of the connection. */
interface Arrived {
  /** Bytes that were taken from the body. */
  taken: number;
  /** The body that is being received. */
  body?: { readonly readableLength: number };
}

const notAllowed = (fault: 'blocked' | 'port' | 'dns', cause?: unknown) =>
  new DownloadError('failed', fault, 'Not an address to fetch.', cause);

function parseUrl(text: string, base?: URL): URL {
  const refuse = (reason: string, cause?: unknown) => new DownloadError('url', 'address', reason, cause);
  let url: URL;
  try {
    url = new URL(text, base);
  } catch (error) {
    throw refuse('It is not a complete URL, such as https://example.com/photo.jpg.', error);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refuse('Only http and https URLs are downloaded.');
  if (url.username !== '' || url.password !== '')
    throw refuse('URLs with a user name or password are not downloaded.');
  return url;
}

/** Whether a URL is of a kind that can be fetched; its host is checked when it is fetched. */
export function isFetchable(text: string): boolean {
  try {
    parseUrl(text);
    return true;
  } catch {
    return false;
  }
}

/** A lookup for net.connect, which connects to one of the returned addresses without a second look-up. */
function lookupWith(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  return (hostname, _options, callback) => {
    const checked = async () => {
      const addresses = await resolve(hostname);
      if (addresses.length === 0) throw notAllowed('dns');
      if (!addresses.every(isAllowed)) throw notAllowed('blocked');
      return addresses.map((address) => ({ address, family: isIP(address) }));
    };
    checked().then(
      (addresses) => callback(null, addresses),
      (error: unknown) => callback(error instanceof DownloadError ? error : notAllowed('dns', error), []),
    );
  };
}

/** Ends a connection, before more of it is parsed, that has received much more than it brought. */
function boundOverhead(socket: Socket, arrived: Arrived): void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  let parsed = 0;
  socket.read = (size?: number) => {
    if (parsed > maxHeadBytes + maxWireFactor * (arrived.taken + (arrived.body?.readableLength ?? 0))) {
      socket.destroy(new Error(`${parsed} bytes brought ${arrived.taken} of the file`));
      return null;
    }
    const piece = read(size);
    parsed += piece?.length ?? 0;
    return piece;
  };
}

/**
 * Connects only where the rules allow, for the first address and every redirect. A numeric host is never looked up,
 * hence the check before; the check afterwards verifies the address of the connected socket.
 */
function guardedConnector(options: DownloadOptions, arrived: Arrived): buildConnector.connector {
  const { connectTimeoutMs: timeout, resolve, isAllowedAddress } = options;
  const ruleOf = createHostRule(options);
  const common = { timeout, autoSelectFamily: true };
  const guardedConnector = buildConnector({ ...common, lookup: lookupWith(resolve, isAllowedAddress) });
  const trusted = buildConnector({ ...common, lookup: lookupWith(resolveBySystem, () => true) });
  return (target, connected) => {
    const { hostname } = target;
    const callback: buildConnector.Callback = (...[error, socket]) => {
      if (error) return connected(error, null);
      boundOverhead(socket, arrived);
      connected(null, socket);
    };
    const rule = ruleOf(hostname, portOf(target));
    if (rule === 'listed') return trusted(target, callback);
    if (rule !== 'public') return callback(notAllowed(rule === 'denied-port' ? 'port' : 'blocked'), null);
    if (isIP(hostname) !== 0 && !isAllowedAddress(hostname)) return callback(notAllowed('blocked'), null);
    guardedConnector(target, (error, socket) => {
      if (error) return callback(error, null);
      if (isAllowedAddress(socket.remoteAddress ?? '')) return callback(null, socket);
      socket.destroy();
      callback(notAllowed('blocked'), null);
    });
  };
}

/** Category of a lower-level error, for the log. */
function faultOf(error: unknown): DownloadFault {
  if (error instanceof DownloadError) return error.fault;
  const code = String(error instanceof Error && 'code' in error ? error.code : '');
  const name = error instanceof Error ? error.name : '';
  if (
    name === 'TimeoutError' ||
    code === 'ETIMEDOUT' ||
    /^UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT$/.test(code)
  )
    return 'timeout';
  return /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code) ? 'tls' : 'connection';
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Reads a body of at most `maxBytes`. `announced`: the expected bytes, 0 if unknown. */
async function collect(
  body: AsyncIterable<Buffer>,
  announced: number,
  room: Room,
  arrived: Arrived,
  { maxBytes }: DownloadOptions,
): Promise<Buffer> {
  const tooLarge = () => new DownloadError('large', 'large', 'The file is too large.');
  if (announced > maxBytes) throw tooLarge();
  const upload = new UploadBuffer(announced, maxBytes);
  // A buffer of unknown length is copied as it grows, and then exists twice.
  const times = announced > 0 ? 1 : 2;
  let granted = 0;
  for await (const piece of body) {
    const size = upload.size + piece.length;
    if (size > maxBytes) throw tooLarge();
    for (; granted < times * size; granted += step)
      if (!room(step))
        throw new DownloadError('memory', 'memory', 'There is not enough memory for the file now.');
    upload.add(piece);
    arrived.taken = size;
  }
  return upload.take();
}

async function follow(
  start: URL,
  agent: Agent,
  { signal, room, arrived }: { readonly signal: AbortSignal; readonly room: Room; readonly arrived: Arrived },
  options: DownloadOptions,
): Promise<Buffer> {
  const { maxRedirects, totalTimeoutMs } = options;
  let url = start;
  for (let hop = 0; ; hop++) {
    const response = await request(url, {
      dispatcher: agent,
      signal,
      headersTimeout: totalTimeoutMs,
      bodyTimeout: totalTimeoutMs,
      headers: { accept: 'image/*,*/*;q=0.5', 'accept-encoding': 'identity', 'user-agent': 'Cutout' },
    });
    const { statusCode, headers, body } = response;
    // Unwanted bodies are cut off, not read.
    const drop = () => body.on('error', () => {}).destroy();
    if (redirects.has(statusCode) && typeof headers['location'] === 'string') {
      drop();
      if (hop === maxRedirects)
        throw new DownloadError('failed', 'redirect', `More than ${maxRedirects} redirects.`);
      // Host, port and address of the redirect are checked on connecting.
      url = parseUrl(headers['location'], url);
      continue;
    }
    if (statusCode !== 200) {
      drop();
      throw new DownloadError('failed', 'status', `HTTP Status ${statusCode}`);
    }
    try {
      arrived.body = body;
      return await collect(body, Number(headers['content-length'] ?? 0), room, arrived, options);
    } catch (error) {
      drop();
      throw error;
    }
  }
}

/** Public reason for a failed address: the rules, which are no secret, and not what happened. */
function publicReason({ mode, ports }: DownloadOptions): string {
  const numbers = ports.length === 1 ? `port ${ports[0]}` : `ports ${ports.join(', ')}`;
  return mode === 'public'
    ? `The host could not be reached or is not allowed: only public hosts on ${numbers} are.`
    : 'The host could not be reached or is not allowed.';
}

/** The alternative offered to the caller. */
const uploadIt = 'Upload the image instead.';

/** Downloads into memory, under rules that keep callers out of the service's own network. */
export function createDownloader(options: DownloadOptions) {
  const ruleOf = createHostRule(options);
  /** All connection errors have one public text; what a reached host said of the file may be passed on. */
  const publicly = (error: unknown): DownloadError => {
    const fault = faultOf(error);
    const fromHost = error instanceof DownloadError && error.kind !== 'url';
    if (fromHost && ['status', 'redirect', 'large', 'memory'].includes(fault)) return error;
    return new DownloadError('failed', fault, publicReason(options), error);
  };
  return {
    /** Parses an address. Throws DownloadError of kind `url` for one that the rules exclude; nothing is contacted. */
    check(text: string): URL {
      const url = parseUrl(text);
      const refuse = (reason: string) => new DownloadError('url', 'blocked', `${reason} ${uploadIt}`);
      if (options.mode === 'off') throw refuse('This service does not download images.');
      if (options.mode === 'listed' && ruleOf(url.hostname, portOf(url)) !== 'listed')
        throw refuse('This service downloads from listed hosts only, and this host is not listed.');
      return url;
    },
    /** Downloads a checked address. Rejects with DownloadError, or the signal's reason. */
    async download(url: URL, signal: AbortSignal, room: Room): Promise<Buffer> {
      signal.throwIfAborted();
      // One agent a download: no connection, and so no earlier check, is used twice.
      const arrived: Arrived = { taken: 0 };
      const agent = new Agent({ connect: guardedConnector(options, arrived) });
      const limit = AbortSignal.timeout(options.totalTimeoutMs);
      try {
        return await follow(url, agent, { signal: AbortSignal.any([signal, limit]), room, arrived }, options);
      } catch (error) {
        signal.throwIfAborted();
        throw publicly(error);
      } finally {
        await agent.destroy();
      }
    },
  };
}
