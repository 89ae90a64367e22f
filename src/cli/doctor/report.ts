import type { Precision } from '../../compiler/form.ts';
import { describeThreads, type Threads } from '../../engine/threads.ts';
import type { Gpu } from '../../engine/types.ts';
import { operatorsText } from '../../models/precision.ts';
import type { SourceState } from '../../models/verify.ts';
import { megabytes, table } from '../output.ts';
import type { Finding } from './finding.ts';

/** Said wherever a GPU is the device. */
const notRun =
  'This release of Cutout was run with cuda on one H100 alone. In its repository, `npm run bench -- gpu` proves it on another GPU (docs/gpu.md).';

/** Runs measured after the first one; their median is reported. */
export const runCount = 5;

/** One form of the network, opened and run. */
export interface Measured {
  readonly precision: Precision;
  /** Instruction set of Cutout's operators that computed a part of it, cuda for its kernels; null: ONNX Runtime's computed all. */
  readonly operators: string | null;
  /** Whether the server would use it now. */
  readonly used: boolean;
  readonly file: string;
  readonly bytes: number;
  /** Milliseconds to open the file, of the first run and of the median run after it. */
  readonly openMs: number;
  readonly firstRunMs: number;
  readonly runMs: number;
  /** Resident memory added by opening and running the network, in bytes. */
  readonly memoryBytes: number;
}

/** Output of `cutout doctor --json`. */
export interface Report {
  readonly cutout: string;
  /** null: unknown. */
  readonly commit: string | null;
  readonly node: string;
  readonly machine: {
    readonly system: string;
    readonly processor: string;
    /** Cores this process may use. */
    readonly cores: number;
    readonly memoryBytes: number;
    readonly instructionSets: readonly string[];
    /** Compiled version of the pixel loops that is used. */
    readonly simd: string;
  } | null;
  readonly runtime: { readonly file: string; readonly version: string } | null;
  readonly network: {
    readonly name: string;
    readonly device: string;
    /** Why, where CUTOUT_DEVICE is auto. */
    readonly deviceBecause?: string;
    readonly precision: Precision;
    /** Instruction set of Cutout's operators that would compute a part of it; null: ONNX Runtime's compute all. */
    readonly operators: string | null;
    readonly because: string;
  } | null;
  /** The network that looks at what leaves it in doubt; null: none. */
  readonly second: { readonly name: string; readonly state: SourceState } | null;
  /** The GPUs that were opened, in the order of CUTOUT_DEVICE_ID; the network was measured on all of them. */
  readonly gpus: readonly Gpu[];
  readonly threads: Threads;
  readonly measured: readonly Measured[];
  /** Findings about stores, clock, disk and limits. */
  readonly install: readonly Finding[];
  /** What an operator may want to change; nothing is broken. */
  readonly warnings: readonly string[];
  /** What keeps the server from working. Empty: exit status 0. */
  readonly problems: readonly string[];
}

/** A measured form for a person. */
export const nameOf = ({ precision, operators }: Pick<Measured, 'precision' | 'operators'>) =>
  operators === null ? precision : `${precision} (${operators})`;

const ms = (value: number) => `${value.toFixed(0)} ms`;

type Line = [string, string];

function machineLines({ machine, runtime }: Report): Line[] {
  const runtimeLines: Line[] = runtime
    ? [['ONNX Runtime', `${runtime.version || 'not opened'}, ${runtime.file}`]]
    : [];
  if (!machine) return runtimeLines;
  return [
    ['Machine', `${machine.processor}, ${megabytes(machine.memoryBytes)} of memory, ${machine.system}`],
    ['Instructions', machine.instructionSets.join(', ') || 'none relevant'],
    ['Pixel loops', machine.simd],
    ...runtimeLines,
  ];
}

const gpuText = ({ id, name, computeCapability, memoryBytes, driver, cuda, tensorrt }: Gpu) =>
  [
    `${id}: ${name}`,
    ...(computeCapability ? [`compute capability ${computeCapability}`] : []),
    ...(memoryBytes ? [megabytes(memoryBytes)] : []),
    ...(driver ? [`driver ${driver}`] : []),
    ...(cuda ? [`CUDA ${cuda}`] : []),
    ...(tensorrt ? [`TensorRT ${tensorrt}`] : []),
  ].join(', ');

function networkLines({ network, second, gpus }: Report): Line[] {
  const lines: Line[] = [];
  if (network) {
    const { name, device, deviceBecause, precision, because, operators } = network;
    const how = deviceBecause === undefined ? '' : ` (auto: ${deviceBecause})`;
    const who = operatorsText({ precision, ...(operators !== null && { operators }) });
    lines.push(['Network', `${name} on ${device}${how}`], ['Precision', `${precision} (${because})`]);
    if (who) lines.push(['Operators', who]);
  }
  if (second)
    lines.push(['Second network', `${second.name}${second.state === 'ok' ? '' : ` (${second.state})`}`]);
  if (network && network.device !== 'cpu')
    lines.push(...gpus.map((gpu): Line => ['GPU', gpuText(gpu)]), ['', notRun]);
  return lines;
}

const measuredTable = (measured: readonly Measured[]): string =>
  table([
    ['', 'PRECISION', 'OPERATORS', 'FILE', 'OPEN', 'FIRST RUN', 'RUN', 'MEMORY'],
    ...measured.map((each) => [
      each.used ? '*' : ' ',
      each.precision,
      each.operators ? `Cutout's, ${each.operators}` : "ONNX Runtime's",
      megabytes(each.bytes),
      ms(each.openMs),
      ms(each.firstRunMs),
      ms(each.runMs),
      megabytes(each.memoryBytes),
    ]),
  ]);

const marks = { ok: ' ', note: '!', problem: '✗' };

const installTable = (findings: readonly Finding[]): string =>
  table(
    findings.map(({ about, state, said, todo }) => [
      marks[state],
      about,
      state === 'note' && todo ? `${said} → ${todo}` : said,
    ]),
  );

export function describe(report: Report): string {
  const { measured, install, warnings, problems } = report;
  const built = report.commit === null ? '' : ` (${report.commit})`;
  const lines: Line[] = [
    ['Cutout', `${report.cutout}${built} on Node.js ${report.node}`],
    ...machineLines(report),
    ...networkLines(report),
    ['Threads', describeThreads(report.threads)],
  ];
  return [
    table(lines),
    ...(measured.length > 0 ? [measuredTable(measured), `* in use. Median of ${runCount} runs.\n`] : []),
    installTable(install),
    ...warnings.map((warning) => `Note: ${warning}\n`),
    ...problems.map((problem) => `Problem: ${problem}\n`),
    ...(problems.length === 0 ? ['Ready to serve.\n'] : []),
  ].join('\n');
}
