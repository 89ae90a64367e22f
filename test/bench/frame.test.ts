import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import type { Command } from 'commander';
import { benches } from '../../bench/benches.ts';
import { type BenchModule, values } from '../../bench/lib/command.ts';
import type { Outcome, Report } from '../../bench/lib/outcome.ts';
import { createProgram } from '../../bench/program.ts';
import { testFolder } from '../support/stores.ts';

const outcome: Outcome = {
  settings: { server: 'started here' },
  figures: [
    {
      name: 'x.time',
      title: 'time <of> it',
      unit: 'ms',
      median: 12,
      samples: [11, 12, 13],
      goal: { atMost: 10 },
    },
    { name: 'x.ratio', title: 'ratio', unit: '×', median: 0.25, samples: [], goal: { atMost: 0.5 } },
  ],
  parts: [
    {
      kind: 'table',
      title: 'Times',
      columns: ['what', 'ms'],
      rows: [
        ['one', 1.234],
        ['<two>', 2345.6],
      ],
    },
  ],
  notes: ['a note'],
};

/** The command line with one bench that records its arguments. */
function program(name = 'probe') {
  const asked: object[] = [];
  const written = { out: '', err: '' };
  const bench: BenchModule = {
    command: {
      name,
      title: 'A probe',
      summary: 'for tests',
      shared: { rounds: 3, seconds: 9, target: true, images: true },
      options: (command: Command) => command.option('--mp <list>', 'sizes', values.numbers, [1, 12]),
      all: { quick: { rounds: 1 }, full: {} },
    },
    run: async (options: object, { progress }) => {
      asked.push(options);
      progress('half way');
      return outcome;
    },
  };
  const broken: BenchModule = {
    command: { name: 'broken', title: 'Broken', summary: 'fails', all: {} },
    run: async () => {
      throw new Error('out of luck');
    },
  };
  const absent: BenchModule = {
    command: {
      name: 'absent',
      title: 'Absent',
      summary: 'cannot run',
      all: {},
      unavailable: () => 'no addon',
    },
    run: async () => outcome,
  };
  const sink = (to: 'out' | 'err') => ({
    write: (text: string) => {
      written[to] += text;
    },
  });
  const made = createProgram([absent, bench, broken], { out: sink('out'), err: sink('err') });
  for (const command of [made, ...made.commands])
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
  const type = (...words: string[]) => made.parseAsync(['node', 'bench', ...words]);
  return { asked, written, type };
}

test('options reach the bench as values, missing ones as defaults', async (t) => {
  const { asked, type } = program();
  await type('probe');
  await type('probe', '--rounds', '5', '--mp', '0.25,50', '--url', 'http://127.0.0.1:8080/', '--key', 'k');
  t.deepEqual(asked, [
    { rounds: 3, seconds: 9, mp: [1, 12] },
    { rounds: 5, seconds: 9, mp: [0.25, 50], url: 'http://127.0.0.1:8080', key: 'k' },
  ]);
});

test('invalid values are refused before anything is measured', async (t) => {
  for (const words of [
    ['--rounds', '0'],
    ['--rounds', '1.5'],
    ['--seconds', '-1'],
    ['--mp', '1,x'],
    ['--mp', ''],
    ['--url', 'file:///x'],
    ['--unknown'],
  ]) {
    const { asked, type } = program();
    await t.throwsAsync(() => type('probe', ...words), undefined, words.join(' '));
    t.deepEqual(asked, []);
  }
});

test('prints a table and the goals, and writes JSON and a page', async (t) => {
  const { written, type } = program();
  const folder = testFolder(t);
  const [json, html] = [path.join(folder, 'new', 'a.json'), path.join(folder, 'a.html')];
  await type('probe', '--json', json, '--html', html);
  t.regex(written.out, /A probe, \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
  t.regex(written.out, / {2}one +1\.23\n/);
  t.regex(written.out, /time <of> it +12 ms +at most 10 ms: MISSED/);
  t.regex(written.out, /ratio +0\.250× +at most 0\.500×: met/);
  t.is(written.err, 'probe: half way\n');
  const report = JSON.parse(readFileSync(json, 'utf8')) as Report;
  t.like(report, { format: 'cutout-bench-1', bench: 'probe', figures: outcome.figures });
  t.true(Number(report.machine['cores']) >= 1);
  t.regex(report.versions['cutout'] ?? '', /^\d+\./);
  t.true(readFileSync(html, 'utf8').startsWith('<!doctype html>'));
});

test('--json - prints nothing but JSON', async (t) => {
  const { written, type } = program();
  await type('probe', '--json', '-');
  t.is((JSON.parse(written.out) as Report).bench, 'probe');
});

test('`all` runs every bench that can run here into one folder and names those that failed', async (t) => {
  const { asked, written, type } = program();
  const folder = path.join(testFolder(t), 'report');
  await t.throwsAsync(() => type('all', '--quick', '--out', folder), { message: /broken: out of luck/ });
  t.deepEqual(asked, [{ rounds: 1, seconds: 9, mp: [1, 12] }]);
  const reports = JSON.parse(readFileSync(path.join(folder, 'results.json'), 'utf8')) as Report[];
  t.deepEqual(
    reports.map(({ bench }) => bench),
    ['probe'],
  );
  t.true(readFileSync(path.join(folder, 'report.html'), 'utf8').includes('id="probe"'));
  t.regex(written.err, /absent is left out: no addon/);
  await t.throwsAsync(() => type('absent'), { message: 'absent: no addon' });
  await t.throwsAsync(() => type('all', '--only', 'nothing'), { message: /no bench named nothing/ });
});

test('every bench has a unique name and a description', (t) => {
  const names = benches.map(({ command }) => command.name);
  t.is(new Set(names).size, names.length);
  for (const { command } of benches) t.regex(command.name, /^[a-z]+$/);
  t.notThrows(() => createProgram(benches, { out: { write: () => {} }, err: { write: () => {} } }));
});
