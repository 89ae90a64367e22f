import { buffer } from 'node:stream/consumers';
import { deserialize } from 'node:v8';
import type { AvifTask } from './decodeAvif.ts';

// A program of its own: decodes the AVIF of a task to straight RGBA8 on its standard output, or says on its standard error
// why it cannot. A terminal or a supervisor stops the server with all its processes; requests are finished before it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});

// Loaded once the signals are ignored.
const { openImage } = await import('../decode.ts');
const { configureLibvips } = await import('../libvips.ts');
const { undecodable } = await import('./decodeAvif.ts');

const { file, probe, ms } = deserialize(await buffer(process.stdin)) as AvifTask;
// The decoder runs in a thread that `process.exit` would wait for.
setTimeout(() => process.kill(process.pid, 'SIGKILL'), ms).unref();
configureLibvips({ formats: ['avif'] });
try {
  const { data, info } = await openImage(file, probe, probe).toBuffer({ resolveWithObject: true });
  if (info.width !== probe.width || info.height !== probe.height) throw new Error('another size');
  process.stdout.write(data);
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = undecodable;
}
