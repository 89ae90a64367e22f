import { createRequire } from 'node:module';
import type { SingleBar } from 'cli-progress';
import { unfiltered } from './printable.ts';

/** A bar that is removed at its end. Its library is loaded only if one is drawn, because every start of a server imports this file. */
export function newProgressBar(stream: NodeJS.WritableStream, format: string): SingleBar {
  const bars = createRequire(import.meta.url)('cli-progress') as typeof import('cli-progress');
  const options = { stream: unfiltered(stream), format, hideCursor: true, clearOnComplete: true };
  return new bars.SingleBar(options, bars.Presets.shades_classic);
}
