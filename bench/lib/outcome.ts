import { median } from './stats.ts';

/** Result of a bench in a common form. `median` is the figure; `samples` are the values it was computed from. */
export interface Figure {
  /** Stable name for programs: `speed.12mp.png.request`. */
  readonly name: string;
  /** For readers. */
  readonly title: string;
  /** `ms`, `MB`, `1/s`, `×` (a ratio), `` (a plain number) … */
  readonly unit: string;
  readonly median: number;
  /** One per round; empty for figures computed from others. */
  readonly samples: readonly number[];
  readonly goal?: Goal;
}

type Goal = { readonly atMost: number } | { readonly atLeast: number };

/** A figure with samples. */
export const measured = (
  name: string,
  title: string,
  unit: string,
  samples: readonly number[],
  goal?: Goal,
): Figure => ({ name, title, unit, median: median(samples), samples, ...(goal && { goal }) });

/** A figure computed from others. */
export const computed = (name: string, title: string, unit: string, value: number, goal?: Goal): Figure => ({
  name,
  title,
  unit,
  median: value,
  samples: [],
  ...(goal && { goal }),
});

export const isMet = (value: number, goal: Goal): boolean =>
  'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast;

/** Numbers are printed with significant digits; text is unchanged. */
export type Cell = string | number | null;

export interface Table {
  readonly kind: 'table';
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  readonly note?: string;
}

/** One bar per row, from 0. */
export interface Bars {
  readonly kind: 'bars';
  readonly title: string;
  readonly unit: string;
  /** Bars of one series share a colour; a legend names the series if there are several. */
  readonly bars: readonly { readonly label: string; readonly value: number; readonly series?: string }[];
  readonly note?: string;
}

/** One bar per row, composed of parts. */
export interface Stacked {
  readonly kind: 'stacked';
  readonly title: string;
  readonly unit: string;
  readonly parts: readonly string[];
  /** Parts that are not drawn; the others keep the colours of a plot with all of them. */
  readonly omit?: readonly string[];
  /** `values` in the order of `parts`. */
  readonly rows: readonly { readonly label: string; readonly values: readonly number[] }[];
  readonly note?: string;
}

export interface Axis {
  readonly label: string;
  readonly scale?: 'linear' | 'log' | 'percentile';
  /** Smallest value shown at the start of a linear axis; default 0. */
  readonly from?: number;
}

/** Points of one or more series; a `percentile` x axis takes 0..100 and stretches towards 100. */
export interface Lines {
  readonly kind: 'lines';
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly (readonly [number, number])[];
    readonly dots?: boolean;
  }[];
  /** Lines across the plot at a value of an axis. */
  readonly marks?: readonly { readonly axis: 'x' | 'y'; readonly at: number; readonly label: string }[];
  readonly note?: string;
}

/** Rows of images for viewing. */
export interface Strips {
  readonly kind: 'strips';
  readonly title: string;
  readonly rows: readonly {
    readonly label: string;
    readonly note?: string;
    /** `src`: a data: address; `checker` shows a chequered ground behind transparency. */
    readonly images: readonly {
      readonly caption: string;
      readonly src: string;
      readonly checker?: boolean;
    }[];
  }[];
  readonly note?: string;
}

export interface Text {
  readonly kind: 'text';
  readonly text: string;
}

export type Part = Table | Bars | Stacked | Lines | Strips | Text;

export type Settings = Readonly<Record<string, string | number | boolean>>;

/** Result of a bench's `run`. */
export interface Outcome {
  readonly settings: Settings;
  readonly figures: readonly Figure[];
  /** In reading order. */
  readonly parts: readonly Part[];
  /** What a reader must know to interpret the figures. */
  readonly notes?: readonly string[];
}

/** Output of `--json`, and the source of a report. */
export interface Report extends Outcome {
  readonly format: 'cutout-bench-1';
  readonly bench: string;
  readonly title: string;
  /** ISO 8601, UTC. */
  readonly started: string;
  readonly seconds: number;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
}
