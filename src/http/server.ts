import { createServer, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { type AppError, excerpt, fail, malformed, UserError } from '../errors.ts';
import { deferContinue } from './body/receive.ts';
import { Connection, ReceivedMessage } from './connection.ts';
import { connectionAccepted, timeSlice } from './eventLoop.ts';
import { type Handler, RunningRequests } from './runningRequests.ts';

/** Milliseconds that requests which were cut off get to settle their charge. */
const settleMs = 2000;

export interface HttpServer {
  readonly server: Server;
  readonly address: AddressInfo;
  /**
   * Accepts no new connections and resolves when the last request is processed, its charge settled: true if
   * all were answered and the system has taken their answers, false if `graceMs` milliseconds were over and
   * the rest was cut off; work of these that does not end within two seconds more is not waited for.
   */
  close(graceMs: number): Promise<boolean>;
}

/** Returns the error for what node:http refuses before there is a request: it gets the same envelope. */
function refusal(code: string | undefined): AppError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return fail('timeout', { detail: 'The request was not sent completely in time.' });
  return malformed(
    code === 'HPE_HEADER_OVERFLOW' ? 'The headers are too large.' : 'This is not an HTTP request.',
  );
}

/** An address of this machine to ask; of a host that means all interfaces, the loopback one. */
export function urlHere(host: string, port: number): string {
  const name = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** Settings that determined the address, for error messages. */
interface Settings {
  readonly host: string;
  readonly port: string;
}

/** Why the port cannot be opened, and what to do; undefined for another fault. */
function portFault(code: string | undefined, host: string, port: number, settings: Settings) {
  const at = `${host} port ${port}`;
  if (code === 'EADDRINUSE')
    return `Another program already listens on ${at}. Stop it, or set ${settings.port} to another port.`;
  if (code === 'EACCES')
    return `This user is not allowed to listen on ${at}. Set ${settings.port} to 1024 or above.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${settings.host} must be an address of this machine, not "${host}".`;
  return undefined;
}

function listening(server: Server, host: string, port: number, settings: Settings): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: Error & { code?: string }) => {
      const fault = portFault(error.code, host, port, settings);
      reject(fault === undefined ? error : new UserError(fault));
    });
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });
}

function closed(
  server: Server,
  connections: ReadonlyMap<Duplex, Connection>,
  graceMs: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    let inTime = true;
    const timer = setTimeout(() => {
      inTime = false;
      for (const socket of connections.keys()) socket.destroy();
    }, graceMs);
    // Replaces that of node:http, which takes connections whose answer is still being sent for idle and cuts
    // them off.
    TcpServer.prototype.close.call(server, () => {
      clearTimeout(timer);
      // Nothing is left to cut off; this stops node:http's timers for heads and requests.
      server.close();
      resolve(inTime);
    });
    for (const connection of connections.values()) connection.close();
  });
}

/** Limits that node:http checks. */
interface Limits {
  /** Time limit of a request in seconds. */
  readonly timeout: number;
  /** Seconds that an idle connection is kept; default 65. */
  readonly keepAlive?: number;
  /** Milliseconds for the head of a request; default 20 s. */
  readonly headMs?: number;
}

export interface ListenOptions extends Limits {
  readonly host: string;
  readonly port: number;
  readonly settings?: Settings;
  /** Milliseconds within which a client must send, or take, something; default 30 s. */
  readonly stallMs?: number;
}

/** Each takes a descriptor and some kilobytes; further connections are closed immediately. */
const maxConnections = 20_000;

/** Time limits and sizes of node:http. */
const serverOptions = ({ timeout, keepAlive, headMs }: Required<Limits>): ServerOptions => ({
  // The application answers a late upload itself; this limit is for clients that do not read the answer.
  requestTimeout: (timeout + 20) * 1000,
  headersTimeout: headMs,
  // Interval at which node:http checks both limits; its default of 30 s would more than double the one
  // for heads.
  connectionsCheckingInterval: Math.min(5000, headMs),
  keepAliveTimeout: keepAlive * 1000,
  maxHeaderSize: 32 * 1024,
  // The application checks it, so that the answer has its envelope.
  requireHostHeader: false,
});

/** Answers what node:http has no request for, or would answer itself. */
function answerOddities(server: Server, connections: ReadonlyMap<Duplex, Connection>): void {
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    // Where the client ends its side, node:http would end this one too, before the error is sent.
    socket.removeAllListeners('end');
    timeSlice(() => connections.get(socket)?.refuse(refusal(error.code)));
  });
  // Without a listener node:http closes the connection.
  server.on('connect', (req, socket) => {
    socket.on('error', () => {});
    connections.get(socket)?.refuse(
      fail('method_not_allowed', {
        detail: `This service is not a proxy: CONNECT ${excerpt(req.url ?? '')}`,
        headers: { Allow: 'GET, HEAD, OPTIONS, POST' },
      }),
    );
  });
}

/** Opens the port. Throws UserError if it cannot be opened. */
export async function listen(
  application: Handler,
  {
    host,
    port,
    timeout,
    keepAlive = 65,
    settings = { host: 'CUTOUT_HOST', port: 'CUTOUT_PORT' },
    stallMs = 30_000,
    headMs = 20_000,
  }: ListenOptions,
): Promise<HttpServer> {
  const running = new RunningRequests(application);
  const connections = new Map<Duplex, Connection>();
  const handler = (req: ReceivedMessage, res: ServerResponse) =>
    connections.get(req.socket)?.addRequest(req, res);
  const server = createServer(
    { ...serverOptions({ timeout, keepAlive, headMs }), IncomingMessage: ReceivedMessage },
    handler,
  );
  server.on('checkContinue', (req, res) => {
    deferContinue(req);
    handler(req, res);
  });
  // Other expectations may be ignored (RFC 9110 section 10.1.1); node:http would answer 417.
  server.on('checkExpectation', handler);
  server.on('connection', (socket) => {
    connectionAccepted();
    connections.set(socket, new Connection(socket, running));
    socket.once('close', () => connections.delete(socket));
  });
  server.maxConnections = maxConnections;
  // No data for a while; with this listener node:http leaves the connection to us.
  server.setTimeout(stallMs, (socket) => connections.get(socket)?.stalled());
  answerOddities(server, connections);
  // Half-closed connections are kept, so that a client that has ended its side gets its answer. An
  // undocumented option of node:http, there since its beginning; `Connection` detects clients that are gone.
  Object.assign(server, { httpAllowHalfOpen: true });
  const address = await listening(server, host, port, settings);
  const close = async (graceMs: number) => {
    const inTime = await closed(server, connections, graceMs);
    // A library that cannot be interrupted may hold requests whose connection is cut off.
    const late = new Promise<void>((resolve) => {
      if (!inTime) setTimeout(resolve, settleMs).unref();
    });
    await Promise.race([running.done(), late]);
    return inTime;
  };
  return { server, address, close };
}
