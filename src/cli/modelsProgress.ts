import type { SingleBar } from 'cli-progress';
import { openingText } from '../engine/openingText.ts';
import type { Observer, Phase } from '../models/observer.ts';
import { newProgressBar } from './output.ts';

/** Where progress is shown: a terminal gets a bar, anything else a line per phase and tenth. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

const titles: Record<Phase, string> = {
  wait: 'waiting for another process that downloads this network',
  download: 'downloading',
  copy: 'copying',
  unpack: 'unpacking',
  prepare: 'preparing',
  measure: 'measuring which form is the fastest',
  open: 'opening',
};

const inMegabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

/**
 * An observer that draws on `out`: a bar on a terminal, of what changed its phase last; elsewhere a line per phase and
 * tenth. `name` is what progress is about that names no network. `done` removes the bar and must be called at the end.
 */
export function progressOn(out: Output, name: string): Observer & { done(): void } {
  let bar: SingleBar | undefined;
  /** What the bar is about. */
  let drawn = '';
  const phases = new Map<string, Phase>();
  /** The tenths of each network's phase that were printed. */
  const tenths = new Map<string, number>();
  const stop = () => {
    bar?.stop();
    bar = undefined;
  };

  const draw = (bytes: number, total: number, about: string, title: string) => {
    if (bar && about !== drawn) return;
    const shown = { done: inMegabytes(bytes), all: inMegabytes(total) };
    if (!bar) {
      bar = newProgressBar(out, `${title} {bar} {percentage}% | {done} of {all} MB | {eta_formatted} left`);
      bar.start(total, bytes, shown);
      drawn = about;
    }
    bar.update(bytes, shown);
  };
  const print = (bytes: number, total: number, about: string, title: string) => {
    const tenth = Math.floor((bytes / total) * 10);
    if (tenth > (tenths.get(about) ?? -1))
      out.write(`${title}: ${inMegabytes(bytes)} of ${inMegabytes(total)} MB\n`);
    tenths.set(about, tenth);
  };

  return {
    notice(text) {
      stop();
      out.write(`${text}\n`);
    },
    progress({ phase, network: about = name, step, bytes, total }) {
      if (step) {
        stop();
        out.write(`Opening ${openingText(step)} …\n`);
        return;
      }
      const changed = phases.get(about) !== phase;
      if (changed) {
        stop();
        tenths.delete(about);
      }
      phases.set(about, phase);
      const title = `${about}: ${titles[phase]}`;
      if (bytes !== undefined && total !== undefined) (out.isTTY ? draw : print)(bytes, total, about, title);
      else if (changed) out.write(`${title} …\n`);
    },
    done: stop,
  };
}

/** Does `work`, whose progress is drawn as by `progressOn`. */
export async function withProgress<T>(
  out: Output,
  name: string,
  work: (observer: Observer) => Promise<T>,
): Promise<T> {
  const observer = progressOn(out, name);
  try {
    return await work(observer);
  } finally {
    observer.done();
  }
}
