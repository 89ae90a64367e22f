import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { scene } from '../fixtures/images.ts';
import { dial } from '../fixtures/rawHttp.ts';
import { eventually, resultOf, startService } from '../fixtures/service.ts';

/** Larger than what the system buffers of a connection. */
const imageBytes = 40_000_001;

/** Counts the turns of the event loop while `work` is done. */
async function countingTurns(work: (turns: () => number) => Promise<void>): Promise<void> {
  let [turns, counting] = [0, true];
  const count = () => {
    turns += 1;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  try {
    await work(() => turns);
  } finally {
    counting = false;
  }
}

test('answers in JSON are encoded one piece in a turn of the event loop, no further than their clients read', async (t) => {
  const image = randomBytes(imageBytes);
  const pieces: { readonly bytes: number; readonly turn: number }[] = [];
  const service = await startService(t, {
    cutout: async () => resultOf(image, { replayed: true, tracksDelivery: false }),
  });
  const body = JSON.stringify({ image_file_b64: (await scene()).toString('base64') });
  const request = [
    'POST /v1.0/cutout HTTP/1.1',
    'Host: x',
    `X-Api-Key: ${service.key}`,
    'Accept: application/json',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
  const encode = image.toString.bind(image);
  await countingTurns(async (turns) => {
    image.toString = (encoding, start = 0, end = imageBytes) => {
      pieces.push({ bytes: Math.min(end, imageBytes) - start, turn: turns() });
      return encode(encoding, start, end);
    };
    const sockets = await Promise.all([1, 2].map(() => dial(service.address.port)));
    for (const socket of sockets) socket.pause().write(request);
    await eventually(() => pieces.length > 1);
    // Until the system takes no more.
    for (let [seen, since] = [0, 0]; since < 1000; since += 1) {
      await turn();
      if (pieces.length !== seen) [seen, since] = [pieces.length, 0];
    }
    const encoded = pieces.reduce((sum, { bytes }) => sum + bytes, 0);
    t.true(encoded < 2 * imageBytes * 0.75, `${encoded} bytes`);

    for (const socket of sockets) {
      const parts: Buffer[] = [];
      socket.on('data', (part) => parts.push(part));
      socket.resume();
      await once(socket, 'end');
      const answer = Buffer.concat(parts);
      const start = answer.indexOf('\r\n\r\n') + 4;
      const expected = `{"data":{"result_b64":"${encode('base64')}","foreground_top":2,"foreground_left":1,"foreground_width":3,"foreground_height":4,"uncertainty":-1}}`;
      t.true(answer.subarray(start).equals(Buffer.from(expected)), 'the same bytes');
      t.regex(answer.toString('latin1', 0, start), new RegExp(`^Content-Length: ${expected.length}\r$`, 'm'));
    }
  });
  t.is(new Set(pieces.map((piece) => piece.turn)).size, pieces.length);
  t.true(Math.max(...pieces.map(({ bytes }) => bytes)) < 1e6);
});
