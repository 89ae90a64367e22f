import { createRequire } from 'node:module';
import type { SingleBar } from 'cli-progress';
import type { Observer, Phase, Progress } from '../models/observer.ts';

/** Where progress is shown: a terminal gets a bar, anything else a line per phase and tenth. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

const TITLES: Record<Phase, string> = {
  wait: 'waiting for another process that downloads this network',
  download: 'downloading',
  unpack: 'unpacking',
  prepare: 'preparing',
};

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

/** Loaded only if a bar is drawn, because every start of a server imports this file. */
function newBar(stream: Output, format: string): SingleBar {
  const bars = createRequire(import.meta.url)('cli-progress') as typeof import('cli-progress');
  const options = { stream, format, hideCursor: true, clearOnComplete: true };
  return new bars.SingleBar(options, bars.Presets.shades_classic);
}

/** An observer that draws on `out`. `done` removes the bar and must be called at the end. */
export function progressOn(out: Output, name: string): Observer & { done(): void } {
  let bar: SingleBar | undefined;
  let phase: Phase | undefined;
  let tenth = -1;
  const stop = () => {
    bar?.stop();
    bar = undefined;
  };

  const draw = ({ bytes, total }: Progress, title: string) => {
    if (bytes === undefined || total === undefined) {
      stop();
      out.write(`${title} …\n`);
      return;
    }
    if (!bar) {
      const format = `${title} {bar} {percentage}% | {done} of {all} MB | {eta_formatted} left`;
      bar = newBar(out, format);
      bar.start(total, bytes, { done: megabytes(bytes), all: megabytes(total) });
    }
    bar.update(bytes, { done: megabytes(bytes), all: megabytes(total) });
  };

  const print = ({ bytes, total }: Progress, title: string, changed: boolean) => {
    if (bytes === undefined || total === undefined) {
      if (changed) out.write(`${title} …\n`);
      return;
    }
    const now = Math.floor((bytes / total) * 10);
    if (now > tenth) out.write(`${title}: ${megabytes(bytes)} of ${megabytes(total)} MB\n`);
    tenth = now;
  };

  return {
    notice(text) {
      stop();
      out.write(`${text}\n`);
    },
    progress(progress) {
      const changed = progress.phase !== phase;
      if (changed) {
        stop();
        tenth = -1;
      }
      phase = progress.phase;
      const title = `${name}: ${TITLES[progress.phase]}`;
      if (!out.isTTY) print(progress, title, changed);
      else if (changed || progress.bytes !== undefined) draw(progress, title);
    },
    done: stop,
  };
}
