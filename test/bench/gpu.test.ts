import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parseTable } from '../../bench/batching.ts';
import { type Checked, figuresOf } from '../../bench/gpu.ts';
import { root } from '../../bench/lib/paths.ts';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { Networks } from '../fixtures/engineSetup.ts';

const program = path.join(root, 'build', 'native', 'cutout_gpu_check');

const networks = new Networks();
test.after.always(() => networks.remove());
/** A network of 64 x 64 with a logit. */
const file = (name: string, gain: number) => networks.spec(name, { batch: true, convolutions: 2, gain }).path;

function check(t: ExecutionContext, ...args: readonly string[]) {
  const json = path.join(temporaryFolder(t), 'report.json');
  const { status, stdout, stderr } = spawnSync(program, [...args, '--json', json], { encoding: 'utf8' });
  return {
    status,
    out: stdout,
    errors: stderr,
    report: () => JSON.parse(readFileSync(json, 'utf8')) as Checked,
  };
}

const onHost = (network: string, ...more: readonly string[]) => [
  ...['--device', 'host', '--cases', '50', '--runtime', defaultRuntimePath(), '--network', network],
  ...['--width', '64', '--height', '64', '--logit', '--batch', '4', '--seconds', '0.1'],
  ...['--parts', 'kernels,network', ...more],
];

test('with the CPU in place of a GPU everything is checked, measured and found right', (t) => {
  const { status, out, errors, report } = check(t, ...onHost(file('right', 40)));
  t.is(status, 0, out + errors);
  const { ok, device, findings, kernels, latencies, load } = report();
  t.true(ok);
  t.is(device, 'host (not a GPU)');
  t.deepEqual(
    findings.map(({ part, ok }) => [part, ok]),
    ['kernels', 'network', 'finite', 'values'].map((part) => [part, true]),
  );
  t.true(kernels.length >= 10);
  for (const { name, largest, limit } of kernels) t.true(largest !== null && largest <= limit, name);
  t.deepEqual(
    latencies.map(({ batch, notFinite, meanDifference }) => [batch, notFinite, meanDifference]),
    [1, 2, 4].map((batch) => [batch, 0, 0]),
  );
  t.true((load?.p99Ms ?? 0) >= (load?.p50Ms ?? 1));
  t.regex(out, /^Device: host \(not a GPU\)$/m);
  t.regex(out, /^Everything is as it should be\.$/m);
  // The report is a table of latencies for the simulation of batches.
  t.is(parseTable(JSON.stringify(report())).table.length, 3);
});

test('the engine is checked as requests use it, with cancelled jobs', (t) => {
  const { status, out, errors, report } = check(t, ...onHost(file('engine', 40), '--parts', 'engine,lost'));
  t.is(status, 0, out + errors);
  t.deepEqual(
    report().findings.map(({ part }) => part),
    ['engine', 'cancelled'],
  );
  t.deepEqual(
    report().engine?.rounds.map(({ width, atATime }) => [width, atATime]),
    [
      [1155, 1],
      [1155, 8],
    ],
  );
  t.regex(out, /^ 1155 x 866 +8 /m);
});

test('a network that gives other values than its reference is found, and ends with 1', (t) => {
  const { status, out, report } = check(t, ...onHost(file('one', 40), '--reference', file('other', -40)));
  t.is(status, 1, out);
  t.deepEqual(
    report()
      .findings.filter(({ ok }) => !ok)
      .map(({ part }) => part),
    ['values'],
  );
  t.true(report().latencies.every(({ meanDifference }) => meanDifference > 0.1));
  t.regex(out, /^WRONG +values/m);
});

test('values that are no numbers are found, and end with 1', (t) => {
  const { status, out, report } = check(
    t,
    ...onHost(file('infinite', Number.POSITIVE_INFINITY), '--reference', file('finite', 40)),
  );
  t.is(status, 1, out);
  t.true(report().findings.some(({ part, ok }) => part === 'finite' && !ok));
  t.true(report().latencies.every(({ notFinite }) => notFinite > 0));
});

test('a network that cannot be opened, and parts that are not given, are findings', (t) => {
  const missing = check(t, ...onHost('/nothing.onnx'));
  t.is(missing.status, 1);
  t.regex(missing.out, /^WRONG +network +The network file '\/nothing\.onnx' does not exist\.$/m);
  const kernelsOnly = check(t, '--device', 'host', '--cases', '10');
  t.is(kernelsOnly.status, 1);
  t.regex(kernelsOnly.out, /^WRONG +network +It was not checked: --network names/m);
});

test('without a GPU it says what is missing and ends with 3', (t) => {
  // The number is above what any machine has.
  const { status, out, errors } = check(t, '--device', '1023');
  t.is(status, 3);
  t.is(out, '');
  t.regex(errors, /^cutout_gpu_check: The GPU cannot be checked: .+\.\n$/);
});

test('a wrong command line ends with 2 and the usage', (t) => {
  for (const args of [
    ['--batch', '65'],
    ['--batch'],
    ['--seconds', 'x'],
    ['--gpu'],
    ['--network', 'a.onnx'],
    ['--parts', 'kernels,none'],
  ]) {
    const { status, errors } = check(t, ...args);
    t.is(status, 2, args.join(' '));
    t.regex(errors, /Ends with 0 when everything is right/);
  }
});

test('npm run bench -- gpu ends without a GPU as the program does', (t) => {
  const bench = path.join(root, 'bench', 'index.js');
  const { status, stderr } = spawnSync(process.execPath, [bench, 'gpu', '--device', '1023'], {
    encoding: 'utf8',
    env: { ...process.env, CUTOUT_DATA_DIR: temporaryFolder(t) },
  });
  t.is(status, 3, stderr);
  t.regex(stderr, /bench: cutout_gpu_check: The GPU cannot be checked: /);
});

test('figures: the best batch, its share of the peak, and the spread at 80 % load', (t) => {
  const latency = { notFinite: 0, meanDifference: 0, p999Difference: 0 };
  const checked: Checked = {
    ok: true,
    device: 'NVIDIA L4',
    findings: [],
    kernels: [],
    latencies: [
      { ...latency, batch: 1, ms: 10, imagesPerSecond: 100 },
      { ...latency, batch: 8, ms: 40, imagesPerSecond: 200 },
    ],
    load: { share: 0.8, offeredPerSecond: 160, donePerSecond: 160, p50Ms: 20, p99Ms: 50 },
    deviceMemoryBytes: 3e9,
    loadMs: 1000,
    warmUpMs: 100,
  };
  const value = (name: string, peak?: number) =>
    figuresOf(checked, { work: 0.32, ...(peak !== undefined && { peak }) }).find(
      (figure) => figure.name === name,
    );
  t.is(value('gpu.rate')?.median, 200);
  t.is(value('gpu.batch.8')?.median, 40);
  t.is(value('gpu.share'), undefined);
  t.is(value('gpu.share', 128)?.median, 0.5);
  t.is(value('gpu.spread')?.median, 2.5);
  t.is(value('gpu.memory')?.median, 3000);
});
