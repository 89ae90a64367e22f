import { once } from 'node:events';
import { createServer, IncomingMessage, type RequestListener, type ServerOptions } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { ReceivedMessage } from '../../src/http/connection.ts';
import { eventually } from '../fixtures/service.ts';

/*
 * What src/http/connection.ts relies on in node:http and its documentation does not promise. A version of Node.js that fails
 * here needs another way to bound the requests and the chunks of one packet.
 */

async function listening(
  t: ExecutionContext,
  options: ServerOptions<typeof IncomingMessage>,
  listener: RequestListener<typeof IncomingMessage>,
): Promise<Socket> {
  const server = createServer(options, listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  t.teardown(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  await once(socket, 'connect');
  return socket;
}

const pipelined = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000);

for (const stops of [false, true])
  test(`of the requests in one packet ${stops ? 'none is created once the parser is stopped' : 'all are created, even after the socket is destroyed'}`, async (t) => {
    let created = 0;
    class Counted extends IncomingMessage {
      constructor(socket: Socket) {
        super(socket);
        created += 1;
      }
    }
    let closed = false;
    const socket = await listening(t, { IncomingMessage: Counted }, (req) => {
      if (req.socket.destroyed) return;
      const { parser } = req.socket as Socket & { parser?: object | null };
      if (stops && parser) Object.assign(parser, { onIncoming: () => 2 });
      req.socket.once('close', () => {
        closed = true;
      });
      req.socket.destroy();
    });
    socket.write(pipelined);
    await eventually(() => closed);
    if (stops) t.true(created <= 2, `${created} were created`);
    else t.true(created > 100, `${created} were created: the hook is not needed any more`);
  });

test('every chunk of a body is pushed on its own, and one that is refused ends the reading', async (t) => {
  const pieces: (number | null)[] = [];
  const ended = new Promise<void>((resolve) => {
    void listening(t, { IncomingMessage: ReceivedMessage as typeof IncomingMessage }, (req) => {
      (req as ReceivedMessage).onPiece = (piece) => {
        pieces.push(piece?.length ?? null);
        return true;
      };
      req.resume().once('end', resolve);
    }).then((socket) => {
      const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
      socket.write(`${head}${'1\r\na\r\n'.repeat(50)}0\r\n\r\n`);
    });
  });
  await ended;
  t.deepEqual(pieces, [...Array.from({ length: 50 }, () => 1), null]);
});

test('nothing more is read from a connection whose chunk was refused', async (t) => {
  let refused = 0;
  let received: Socket | undefined;
  const socket = await listening(t, { IncomingMessage: ReceivedMessage as typeof IncomingMessage }, (req) => {
    received = req.socket;
    (req as ReceivedMessage).onPiece = () => {
      refused += 1;
      return false;
    };
    req.resume();
  });
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const megabyte = `100000\r\n${'a'.repeat(0x100000)}\r\n`;
  socket.write(head + megabyte.repeat(32));
  await eventually(() => refused > 0);
  const read = received?.bytesRead ?? 0;
  // Two turns of the event loop, in which a connection that is read would have had more.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  t.is(received?.bytesRead, read);
  t.true(read < 0x200000, `${read} bytes were read`);
});
