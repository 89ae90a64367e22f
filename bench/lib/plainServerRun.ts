// A server on loopback that only reads a body and answers (plainServer.ts). Its first message is the answer; it sends its
// port, and ends when the parent disconnects.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { PlainAnswer } from './plainServer.ts';

process.once('message', ({ type, body }: PlainAnswer) => {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'content-type': type, 'content-length': body.length });
      response.end(body);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
process.once('disconnect', () => process.exit());
