import type { IncomingMessage, ServerResponse } from 'node:http';

const lingerMs = 1000;

/**
 * Answers while the client is still sending. Closing at once would make the client see a reset instead of
 * the answer, reading on for ever would let it send without limit: so what still comes is thrown away and
 * the connection ends when the client is done, or a second after the answer.
 */
export function linger(req: IncomingMessage, res: ServerResponse): void {
  if (req.complete || req.destroyed) return;
  res.setHeader('Connection', 'close');
  req.unpipe();
  req.removeAllListeners('data');
  req.on('error', () => {
    // A reset is an end like any other here.
  });
  req.resume();
  res.once('finish', () => {
    const timer = setTimeout(() => req.socket.destroy(), lingerMs);
    req.socket.once('close', () => clearTimeout(timer));
  });
}
