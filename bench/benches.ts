import * as batching from './batching.ts';
import * as gpu from './gpu.ts';
import * as kernels from './kernels.ts';
import type { BenchModule } from './lib/command.ts';
import * as load from './load.ts';
import * as memory from './memory.ts';
import * as observe from './observe.ts';
import * as overload from './overload.ts';
import * as peers from './peers.ts';
import * as png from './png.ts';
import * as precision from './precision.ts';
import * as prepare from './prepare.ts';
import * as preview from './preview.ts';
import * as quality from './quality.ts';
import * as repeats from './repeats.ts';
import * as rest from './rest.ts';
import * as selection from './selection.ts';
import * as speed from './speed.ts';
import * as start from './start.ts';
import * as subject from './subject.ts';
import * as threads from './threads.ts';

/** Every bench, in the order of --help and of `all`. bench/README.md says how to add one. */
export const benches: readonly BenchModule[] = [
  speed,
  preview,
  load,
  overload,
  observe,
  memory,
  rest,
  quality,
  peers,
  kernels,
  png,
  threads,
  batching,
  gpu,
  subject,
  selection,
  repeats,
  prepare,
  precision,
  start,
];
