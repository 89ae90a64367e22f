import type { SingleBar } from 'cli-progress';
import { openingText } from '../engine/opening.ts';
import type { Observer, Phase, Progress } from '../models/observer.ts';
import { newProgressBar } from './output.ts';

/** Where progress is shown: a terminal gets a bar, anything else a line per phase and tenth. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

const TITLES: Record<Phase, string> = {
  wait: 'waiting for another process that downloads this network',
  download: 'downloading',
  copy: 'copying',
  unpack: 'unpacking',
  prepare: 'preparing',
  open: 'opening',
};

const inMegabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

/**
 * An observer that draws on `out`; `name` is what progress is about that names no network. There is one bar, of what
 * changed its phase last. `done` removes it and must be called at the end.
 */
export function progressOn(out: Output, name: string): Observer & { done(): void } {
  let bar: SingleBar | undefined;
  /** What the bar is about. */
  let drawn = '';
  const phases = new Map<string, Phase>();
  /** Of the phase of each. */
  const tenths = new Map<string, number>();
  const stop = () => {
    bar?.stop();
    bar = undefined;
  };

  const draw = ({ bytes, total }: Progress, about: string, title: string, changed: boolean) => {
    if (bytes === undefined || total === undefined) {
      if (changed) out.write(`${title} …\n`);
      return;
    }
    if (bar && about !== drawn) return;
    if (!bar) {
      const format = `${title} {bar} {percentage}% | {done} of {all} MB | {eta_formatted} left`;
      bar = newProgressBar(out, format);
      bar.start(total, bytes, { done: inMegabytes(bytes), all: inMegabytes(total) });
      drawn = about;
    }
    bar.update(bytes, { done: inMegabytes(bytes), all: inMegabytes(total) });
  };

  const print = ({ bytes, total }: Progress, about: string, title: string, changed: boolean) => {
    if (bytes === undefined || total === undefined) {
      if (changed) out.write(`${title} …\n`);
      return;
    }
    const now = Math.floor((bytes / total) * 10);
    if (now > (tenths.get(about) ?? -1))
      out.write(`${title}: ${inMegabytes(bytes)} of ${inMegabytes(total)} MB\n`);
    tenths.set(about, now);
  };

  return {
    notice(text) {
      stop();
      out.write(`${text}\n`);
    },
    progress(progress) {
      const { phase, network: about = name, step } = progress;
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
      const title = `${about}: ${TITLES[phase]}`;
      if (out.isTTY) draw(progress, about, title, changed);
      else print(progress, about, title, changed);
    },
    done: stop,
  };
}
