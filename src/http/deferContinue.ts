import type { IncomingMessage, ServerResponse } from 'node:http';

const waiting = new WeakSet<IncomingMessage>();

/** A client that sent `Expect: 100-continue` and holds its body back until it is told to go on. */
export function deferContinue(req: IncomingMessage): void {
  waiting.add(req);
}

/** Lets such a client send. One that was refused before (wrong key, unknown path) never uploads in vain. */
export function sendContinue(req: IncomingMessage, res: ServerResponse): void {
  if (waiting.delete(req)) res.writeContinue();
}
