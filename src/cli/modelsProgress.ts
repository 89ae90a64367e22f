import type { SingleBar } from 'cli-progress';
import type { Observer, Phase, Progress } from '../models/observer.ts';
import { newProgressBar } from './progressBar.ts';

/** Where progress is shown: a terminal gets a bar, anything else a line per phase and tenth. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

const TITLES: Record<Phase, string> = {
  wait: 'waiting for another process that downloads this network',
  download: 'downloading',
  copy: 'copying',
  unpack: 'unpacking',
  prepare: 'preparing',
};

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

/** An observer that draws on `out`. `done` removes the bar and must be called at the end. */
export function progressOn(
  out: Output,
  name: string,
  titles: Partial<Record<Phase, string>> = {},
): Observer & { done(): void } {
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
      bar = newProgressBar(out, format);
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
      const title = `${name}: ${titles[progress.phase] ?? TITLES[progress.phase]}`;
      if (!out.isTTY) print(progress, title, changed);
      else if (changed || progress.bytes !== undefined) draw(progress, title);
    },
    done: stop,
  };
}
