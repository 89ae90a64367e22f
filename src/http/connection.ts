import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type AppError, fail } from '../errors.ts';
import { errorHeaders } from './errorHeaders.ts';
import { corsHeaders } from './middleware/cors.ts';

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly start: () => void;
  started: boolean;
}

/**
 * Of the requests sent ahead on one connection, so many are worked on at a time: reading goes on, so that a client that
 * leaves is noticed, and no connection takes more than this of files and memory for answers that nobody takes.
 */
const mostStarted = 4;
/** So many may be under way and wait on one connection; one that sends more is closed. */
const mostOpen = 64;

/** How long a connection stays after its last answer for a client that does not close it. */
const lingerMs = 1000;
/** Waiting times between two looks whether a client that ended its side is still there. */
const firstLookMs = 50;
const lastLookMs = 5000;

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  504: 'Gateway Timeout',
};

/** An answer where node:http has no response to write it to. */
function rawAnswer(error: AppError): string {
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

/**
 * The requests of one connection that are not answered yet, in their order, and what happens when the client ends its
 * side or sends what is no request. One for each socket.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #open: Exchange[] = [];
  #refused = false;
  #ended = false;
  #closing = false;
  /** Bytes that had come when the last request on it was over: more are the beginning of the next one. */
  #read = 0;
  /** Closed for what it sent: what is parsed of that still is thrown away. */
  #cut = false;
  #look: NodeJS.Timeout | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.once('end', () => this.#clientEnded());
    socket.once('close', () => {
      this.#cut = true;
      clearTimeout(this.#look);
    });
  }

  /** A request came. `start` is called when its turn is near, and never once the connection is closed. */
  begins(req: IncomingMessage, res: ServerResponse, start: () => void): void {
    // No answer could be sent any more.
    if (this.#cut || this.#ended) return;
    if (this.#open.length === mostOpen) {
      this.#tooMany();
      return;
    }
    const exchange = { req, res, start, started: false };
    this.#open.push(exchange);
    res.once('close', () => {
      this.#open.splice(this.#open.indexOf(exchange), 1);
      this.#startNext();
      this.#requestOver();
    });
    req.once('close', () => this.#requestOver());
    // node:http would read the rest of a body that nobody asked for, however long it is.
    res.once('finish', () => {
      if (!req.complete) setTimeout(() => req.complete || this.#socket.destroy(), lingerMs).unref();
    });
    this.#startNext();
  }

  #startNext(): void {
    for (const exchange of this.#open.slice(0, mostStarted)) {
      if (exchange.started || this.#cut) continue;
      exchange.started = true;
      exchange.start();
    }
  }

  /**
   * node:http would parse the rest of what it has read, up to 64 KB at a time, and keep it until all before it is answered:
   * the connection ends at once. The client is told why where no answer has begun.
   */
  #tooMany(): void {
    this.#cut = true;
    this.#refused = true;
    const socket: Socket & { parser?: object | null } = this.#socket;
    // Not in the documentation of node:http: 2 makes its parser stop, as before another protocol. Without it thousands
    // of requests of the same packet would be made and thrown away.
    if (socket.parser) Object.assign(socket.parser, { onIncoming: () => 2 });
    if (this.#open[0]?.res.headersSent || !socket.writable) return void socket.destroy();
    const error = fail('malformed_request', {
      detail: `More than ${mostOpen} unanswered requests were sent on one connection: wait for answers, or open more connections.`,
    });
    socket.end(rawAnswer(error), () => socket.destroy());
  }

  /**
   * Answers what node:http cannot make a request of, and ends the connection. Requests that came whole before it get
   * their answers first; one whose body it broke gets this as its answer, unless it has another one already.
   */
  refuse(error: AppError): void {
    if (this.#refused) return;
    this.#refused = true;
    const last = this.#open.at(-1);
    const broken = last && !last.req.complete ? last : undefined;
    const before = this.#open.filter((exchange) => exchange !== broken).at(-1);
    const end = () => this.#end(broken?.res.headersSent ? '' : rawAnswer(error));
    if (before) before.res.once('close', end);
    else end();
  }

  /**
   * Nothing went in or out for a while. A client that stopped in the middle of its body is told so; one that does not
   * take its answer, or has asked for nothing, is left. Whoever waits for an answer that is worked on may wait.
   */
  stalled(): void {
    const last = this.#open.at(-1);
    // Of the others the answers wait for their turn, which is no fault of the client.
    if (!last || this.#open[0]?.res.headersSent) return void this.#socket.destroy();
    // The body of one that waits for its turn is not read yet.
    if (last.started && !last.req.complete) this.refuse(fail('timeout', { detail: 'The upload stalled.' }));
  }

  /**
   * Ends it as soon as everything that was asked on it is answered and the system has the answers. A request whose head
   * has begun to come is waited for.
   */
  close(): void {
    this.#closing = true;
    // Whoever has connected only now may be about to send.
    if (this.#socket.bytesRead === 0) setTimeout(() => this.#closeWhenIdle(), lingerMs).unref();
    else this.#closeWhenIdle();
  }

  #requestOver(): void {
    this.#read = this.#socket.bytesRead;
    if (this.#closing) this.#closeWhenIdle();
  }

  #closeWhenIdle(): void {
    // What was refused has its answer still to come, and ends with it.
    if (this.#refused || this.#open.length > 0 || this.#socket.bytesRead > this.#read) return;
    this.#end('');
  }

  #end(answer: string): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
    if (!socket.writable) return void socket.destroy();
    socket.end(answer);
    // What still comes is thrown away: closing at once would make the client see a reset instead of the answer.
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  }

  /**
   * A client that ends its sending side may wait for its answer or be gone: the same packet says both. Something
   * has to be sent to tell one from the other, because a system whose program is gone answers that with a reset.
   * The interim answer 102 is made for it. HTTP/1.0 has none: such a client counts as gone.
   */
  #clientEnded(): void {
    if (this.#refused) return;
    // node:http says so itself, except of requests that ask for an upgrade.
    if (this.#open.at(-1)?.req.complete === false)
      return void this.refuse(
        fail('malformed_request', { detail: 'The request ended in the middle of its body.' }),
      );
    if (this.#open.some(({ req, res }) => Number(req.httpVersion) < 1.1 && !res.headersSent))
      return void this.#socket.destroy();
    const look = (waitMs: number) => {
      const first = this.#open[0];
      // Once an answer is on its way, sending it tells.
      if (first && !first.res.headersSent && this.#socket.writable) first.res.writeProcessing();
      if (first) this.#look = setTimeout(look, waitMs, Math.min(2 * waitMs, lastLookMs)).unref();
    };
    look(firstLookMs);
  }
}
