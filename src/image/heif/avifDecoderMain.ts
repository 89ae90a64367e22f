import { deserialize } from 'node:v8';
import type { AvifTask } from './decodeAvif.ts';

// A program of its own: decodes the AVIF on its standard input, as the task in its argument says, to straight RGBA8 on its
// standard output, or says on its standard error why it cannot. A terminal or a supervisor stops the server with all its
// processes; requests are finished before it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});

// Loaded once the signals are ignored.
const { openImage } = await import('../decode.ts');
const { configureLibvips } = await import('../libvips.ts');
const { undecodable } = await import('./decodeAvif.ts');

const { fileBytes, probe, target, ms } = deserialize(
  Buffer.from(process.argv[2] ?? '', 'base64'),
) as AvifTask;
// The decoder runs in a thread that `process.exit` would wait for.
setTimeout(() => process.kill(process.pid, 'SIGKILL'), ms).unref();
configureLibvips({ formats: ['avif'] });
const file = new Uint8Array(fileBytes);
let received = 0;
for await (const piece of process.stdin as AsyncIterable<Buffer>) {
  file.set(piece, received);
  received += piece.length;
}
try {
  const { data, info } = await openImage(file, probe, target).toBuffer({ resolveWithObject: true });
  if (info.width !== target.width || info.height !== target.height) throw new Error('another size');
  process.stdout.write(data);
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = undecodable;
}
