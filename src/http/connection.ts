import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type AppError, fail, malformed } from '../errors.ts';
import { isProbe } from '../ops/record.ts';
import { timeSlice, turnOfPipelined, turnToBegin } from './eventLoop.ts';
import { corsHeaders } from './middleware/cors.ts';
import { errorHeaders } from './middleware/errors.ts';
import { endUnanswered } from './onResponseEnd.ts';
import type { RunningRequests } from './runningRequests.ts';

/**
 * A request of which the connection sees every piece of the body before it is buffered. `createServer` makes them instead of
 * its own (option `IncomingMessage`), and its parser pushes each chunk on its own (test/http/nodeHttp.test.ts).
 */
export class ReceivedMessage extends IncomingMessage {
  /** Called before each piece of the body, null at its end; false: it is discarded, and nothing more is read. */
  onPiece: ((piece: Buffer | null) => boolean) | undefined;

  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    // `false` makes node:http stop reading from the socket.
    return (this.onPiece?.(piece) ?? true) && super.push(piece, encoding);
  }
}

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Sent before the answers to earlier requests of its connection had ended. */
  readonly pipelined: boolean;
  started: boolean;
}

/**
 * The maximum number of pipelined requests of one connection that are processed at a time. Reading continues,
 * so that a disconnect is noticed; the bound limits files and memory for answers that nobody reads.
 */
const maxStarted = 4;
/** The maximum number of pending requests on one connection; one that sends more is closed. */
const maxPending = 64;

/**
 * A chunked body of more than `maxTinyChunks` chunks that carry less than `minChunkBytes` bytes each on average
 * is refused. node:http parses all that a read returned, up to 64 KB, in one turn and calls a function for
 * every chunk, so that chunks of single bytes take a hundred times the processor time of whole packets.
 */
const maxTinyChunks = 1000;
const minChunkBytes = 64;

/** Milliseconds for which input is discarded after the last answer, so that the client can read it (lingering close). */
const lingerMs = 1000;
/** Milliseconds for which a stopping server waits for the first bytes of a connection. */
const firstBytesMs = 1000;
/** Milliseconds between two checks whether a half-closed client is still there. */
const firstProbeMs = 50;
const lastProbeMs = 5000;

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  504: 'Gateway Timeout',
};

/** A single instance: thousands of clients may leave at the same moment, and each stack trace takes time. */
const endedInBody = malformed('The request ended in the middle of its body.');

/** A response in bytes, where node:http has no response object. */
function rawResponse(error: AppError): string {
  const body = error.envelope();
  const head = [
    `HTTP/1.1 ${error.status} ${reasons[error.status] ?? 'Error'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries({ ...corsHeaders, ...errorHeaders(error) }).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** The pending requests of one socket, in order, and what an invalid one or the end of the client's side leads to. */
export class Connection {
  readonly #socket: Socket;
  readonly #running: RunningRequests;
  readonly #pending: Exchange[] = [];
  /** The server stops: the connection is closed when it is idle. */
  #closing = false;
  /** An error for what the client sent is its last answer, which is still to be sent, or was: it gets no second one. */
  #refused = false;
  /** Whatever is still received or parsed is discarded, because of what was sent before or because the socket is closed. */
  #discarding = false;
  /** The last answer was given to the socket, and its sending side is closed. */
  #ended = false;
  /** Bytes received when its last request was complete: more belong to the next one. */
  #read = 0;
  #probeTimer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, running: RunningRequests) {
    this.#socket = socket;
    this.#running = running;
    socket.once('end', () => timeSlice(() => this.#clientEnded()));
    socket.once('close', () => {
      this.#discarding = true;
      clearTimeout(this.#probeTimer);
    });
  }

  /** Adds a request, which is started when its turn is near, and never after the connection is closed. */
  addRequest(req: ReceivedMessage, res: ServerResponse): void {
    // No answer could be sent any more.
    if (this.#discarding || this.#ended) return;
    if (this.#pending.length === maxPending) {
      this.#refuseRequest();
      return;
    }
    const exchange = { req, res, pipelined: this.#pending.length > 0, started: false };
    this.#pending.push(exchange);
    res.once('close', () => {
      this.#pending.splice(this.#pending.indexOf(exchange), 1);
      this.#startNext();
      this.#requestOver();
    });
    req.once('close', () => this.#requestOver());
    if (req.headers['transfer-encoding'] !== undefined) this.#boundChunks(req);
    // node:http would read the rest of an unwanted body, however long it is.
    res.once('finish', () => {
      if (!req.complete) setTimeout(() => req.complete || this.#socket.destroy(), lingerMs).unref();
    });
    this.#startNext();
  }

  /** Counts chunks where node:http adds them to the request, so also those that are discarded. */
  #boundChunks(req: ReceivedMessage): void {
    let [chunks, bytes] = [0, 0];
    req.onPiece = (chunk) => {
      if (this.#discarding) return false;
      chunks += 1;
      bytes += chunk?.length ?? 0;
      if (chunk === null || chunks < maxTinyChunks || bytes >= minChunkBytes * chunks) return true;
      this.#refuseChunks(Math.ceil(bytes / chunks));
      return false;
    };
  }

  /** Ends the connection, with an error if no answer has begun, which the client can read for a second. */
  #refuseChunks(mean: number): void {
    const canAnswer = this.#discardInput();
    const socket = this.#socket;
    if (!socket.writable) return void socket.destroy();
    for (const exchange of this.#pending) if (!exchange.res.headersSent) endUnanswered(exchange);
    if (canAnswer) {
      const detail = `The mean length of the body's chunks is ${mean} bytes: send at least ${minChunkBytes} bytes in each, or announce a Content-Length.`;
      socket.end(rawResponse(malformed(detail)));
    }
    setTimeout(() => socket.destroy(), lingerMs).unref();
  }

  /** Discards all further input. True if an error can still be sent: no answer has begun, and the client is there. */
  #discardInput(): boolean {
    this.#discarding = true;
    this.#refused = true;
    return this.#socket.writable && !this.#pending[0]?.res.headersSent;
  }

  #startNext(): void {
    for (const exchange of this.#pending.slice(0, maxStarted)) {
      if (exchange.started || this.#discarding) continue;
      exchange.started = true;
      // A probe asks whether the process works, not how many requests others have sent.
      if (exchange.pipelined) void turnOfPipelined().then(() => this.#start(exchange));
      else if (isProbe(exchange.req.url ?? '')) this.#start(exchange);
      else void turnToBegin().then(() => this.#start(exchange));
    }
  }

  #start({ req, res }: Exchange): void {
    if (!this.#discarding) this.#running.start(req, res);
  }

  /**
   * node:http would parse what it has read, up to 64 KB, and keep it until all requests before are answered, so the
   * connection is ended at once. The client gets an error if no answer has begun.
   */
  #refuseRequest(): void {
    const canAnswer = this.#discardInput();
    const socket: Socket & { parser?: object | null } = this.#socket;
    // 2 stops the parser of node:http, as before a protocol upgrade. That is not documented, and nothing that is does it: a
    // packet of 64 KB may have thousands of requests, each of which would be created and discarded, even though the socket
    // is destroyed. test/http/nodeHttp.test.ts fails if a version of Node.js has no such parser.
    if (socket.parser) Object.assign(socket.parser, { onIncoming: () => 2 });
    if (!canAnswer) return void socket.destroy();
    const error = malformed(
      `More than ${maxPending} unanswered requests were sent on one connection: wait for answers, or open more connections.`,
    );
    socket.end(rawResponse(error), () => socket.destroy());
  }

  /**
   * Answers what node:http cannot parse, after the complete requests before it, and ends the connection. A request
   * with an invalid body gets this answer, unless it has one, and ends now: its body will never be complete.
   */
  refuse(error: AppError): void {
    if (this.#refused) return;
    this.#refused = true;
    const last = this.#pending.at(-1);
    const broken = last && !last.req.complete ? last : undefined;
    const before = this.#pending.filter((exchange) => exchange !== broken).at(-1);
    const end = () => this.#end(broken?.res.headersSent ? '' : rawResponse(error));
    if (broken && !broken.res.headersSent) endUnanswered(broken);
    // After the work of its end, so that nothing of the request is held when the client reads the answer.
    if (before) before.res.once('close', end);
    else timeSlice(end);
  }

  /**
   * Nothing was sent or received for a while. A client that stalled in its body gets an error; one that does not read
   * its answer, or sent no request, is disconnected; one that waits for an answer stays. After a pause of the event
   * loop timers run first, so what arrived meanwhile is read before this decides.
   */
  stalled(): void {
    const socket = this.#socket;
    const { bytesRead, bytesWritten } = socket;
    setImmediate(() => {
      if (socket.bytesRead !== bytesRead || socket.bytesWritten !== bytesWritten) return;
      const last = this.#pending.at(-1);
      // Pipelined answers that wait for their turn are not the client's fault.
      if (!last || this.#pending[0]?.res.headersSent) return void socket.destroy();
      // The body of a request that waits for its turn is not read yet.
      if (last.started && !last.req.complete) this.refuse(fail('timeout', { detail: 'The upload stalled.' }));
    });
  }

  /** Closes when all requests are answered and the system has the answers; waits for a head that partly arrived. */
  close(): void {
    this.#closing = true;
    // A client that has just connected may be about to send.
    if (this.#socket.bytesRead === 0) setTimeout(() => this.#closeWhenIdle(), firstBytesMs).unref();
    else this.#closeWhenIdle();
  }

  #requestOver(): void {
    this.#read = this.#socket.bytesRead;
    if (this.#closing) this.#closeWhenIdle();
  }

  #closeWhenIdle(): void {
    // The error of a refused request is still to be sent, and ends the connection.
    if (this.#refused || this.#pending.length > 0 || this.#socket.bytesRead > this.#read) return;
    this.#end('');
  }

  #end(answer: string): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
    if (!socket.writable) return void socket.destroy();
    socket.end(answer);
    // Further input is discarded: closing at once would reset the connection before the client reads the
    // answer.
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  }

  /**
   * A client that ends its sending side may wait for its answer or be gone; both send the same packet.
   * Sending something distinguishes them, because the system of a client that is gone answers with a reset.
   * The interim response 102 serves this purpose. HTTP/1.0 has none: such a client counts as gone.
   */
  #clientEnded(): void {
    if (this.#refused || this.#socket.destroyed) return;
    // node:http reports this itself, except for upgrade requests.
    if (this.#pending.at(-1)?.req.complete === false) return void this.refuse(endedInBody);
    if (this.#pending.some(({ req, res }) => Number(req.httpVersion) < 1.1 && !res.headersSent))
      return void this.#socket.destroy();
    const probe = (waitMs: number) => {
      const first = this.#pending[0];
      // Once the answer has begun, sending it has the same effect.
      if (first && !first.res.headersSent && this.#socket.writable) first.res.writeProcessing();
      if (first) this.#probeTimer = setTimeout(probe, waitMs, Math.min(2 * waitMs, lastProbeMs)).unref();
    };
    probe(firstProbeMs);
  }
}
