// Runs a peer's adapter in a separate process: node host.js PEER_FILE WARM_UP_JPEG
// Reads lines of JSON {"file", "out"} and answers each with one: {"ms"} or {"error"}. The first line it prints is
// {"about", "prepareMs"}, or {"error"} before it exits with 1. Other lines are the peer's own output.
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import type { Adapter } from './peer.ts';

const [peer = '', warmUp = ''] = process.argv.slice(2);
const print = (line: object) => process.stdout.write(`\n${JSON.stringify({ peer: true, ...line })}\n`);

const { about, prepare, run, close } = (await import(pathToFileURL(peer).href)) as Adapter;
const begin = performance.now();
try {
  await prepare({ warmUp });
} catch (error) {
  print({ error: error instanceof Error ? error.message : String(error) });
  await close?.();
  process.exit(1);
}
print({ about, prepareMs: performance.now() - begin });
for await (const line of createInterface({ input: process.stdin })) {
  const { file, out } = JSON.parse(line) as { file: string; out: string };
  try {
    const { png, ms } = await run(file);
    await writeFile(out, png);
    print({ ms });
  } catch (error) {
    print({ error: error instanceof Error ? error.message : String(error) });
  }
}
await close?.();
