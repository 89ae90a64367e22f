import type { IncomingMessage, ServerResponse } from 'node:http';

const waiting = new WeakSet<IncomingMessage>();

/** Marks a request with `Expect: 100-continue`, whose client waits before it sends the body. */
export function deferContinue(req: IncomingMessage): void {
  waiting.add(req);
}

/** Lets such a client send its body. A request refused before this (wrong key, unknown path) uploads nothing. */
export function sendContinue(req: IncomingMessage, res: ServerResponse): void {
  if (waiting.delete(req)) res.writeContinue();
}
