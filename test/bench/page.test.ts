import test from 'ava';
import type { Part, Report } from '../../bench/lib/outcome.ts';
import { page } from '../../bench/lib/report/page.ts';
import { logTicks, roundUp, ticks } from '../../bench/lib/report/svg.ts';

const pixel = 'data:image/png;base64,iVBORw0KGgo=';

const parts: readonly Part[] = [
  { kind: 'text', text: 'Some <text>' },
  {
    kind: 'table',
    title: 'T & U',
    columns: ['a', 'b'],
    rows: [
      ['<x>', 1],
      ['y', null],
    ],
  },
  {
    kind: 'bars',
    title: 'Bars',
    unit: 'ms',
    bars: [
      { label: 'p', value: 3, series: 's' },
      { label: 'q', value: 0, series: 'r' },
    ],
  },
  {
    kind: 'stacked',
    title: 'Stacked',
    unit: 'ms',
    parts: ['m', 'n'],
    omit: ['n'],
    rows: [{ label: 'z', values: [1, 2] }],
  },
  {
    kind: 'lines',
    title: 'Lines',
    x: { label: 'p', scale: 'percentile' },
    y: { label: 'ms', scale: 'log' },
    series: [
      {
        name: 'l',
        points: [
          [0, 1],
          [50, 2],
          [100, 40],
        ],
        dots: true,
      },
    ],
    marks: [{ axis: 'y', at: 30, label: 'limit' }],
  },
  {
    kind: 'lines',
    title: 'One point',
    x: { label: 'x' },
    y: { label: 'y', from: 5 },
    series: [{ name: 'l', points: [[1, 5]] }],
  },
  { kind: 'lines', title: 'None', x: { label: 'x' }, y: { label: 'y' }, series: [] },
  {
    kind: 'strips',
    title: 'Strips',
    rows: [{ label: 's', images: [{ caption: 'c', src: pixel, checker: true }] }],
  },
];

const report = (over: Partial<Report> = {}): Report => ({
  format: 'cutout-bench-1',
  bench: 'probe',
  title: 'Probe "it"',
  started: '2026-11-21T12:00:00.000Z',
  seconds: 3,
  machine: { cores: 2 },
  versions: { cutout: '1' },
  settings: {},
  figures: [{ name: 'f', title: 'f', unit: '×', median: 0.2, samples: [], goal: { atMost: 0.5 } }],
  parts,
  ...over,
});

/** Names of elements that are opened and not closed in order; void ones and self-closing ones aside. */
function unbalanced(html: string): string[] {
  const open: string[] = [];
  for (const [, close, name = '', self] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*?(\/?)>/gi)) {
    if (self || ['meta', 'input', 'img'].includes(name)) continue;
    if (!close) open.push(name);
    else if (open.pop() !== name) return [`</${name}>`];
  }
  return open;
}

test('a page is well-formed, escapes its input and contains no NaN', (t) => {
  const html = page([report()]);
  t.deepEqual(unbalanced(html), []);
  t.false(html.includes('NaN') || html.includes('Infinity') || html.includes('undefined'));
  t.true(html.includes('Some &lt;text&gt;') && html.includes('T &amp; U') && html.includes('&lt;x&gt;'));
  t.true(html.includes('✓ goal'));
});

test('a page loads nothing and has no scripts', (t) => {
  const html = page([report(), report({ bench: 'second' })]);
  t.false(/<(script|link|iframe|object)\b/i.test(html));
  const addresses = [...html.matchAll(/\b(?:src|href)="([^"]*)"/g)].map(([, address = '']) => address);
  t.true(addresses.length > 0);
  t.true(addresses.every((address) => address.startsWith('data:image/') || address.startsWith('#')));
  t.false(/url\(|@import/.test(html));
  t.true(html.includes('href="#second"') && html.includes('id="second"'));
});

test('an image from another origin is refused', (t) => {
  const strips: Part = {
    kind: 'strips',
    title: 's',
    rows: [{ label: 's', images: [{ caption: 'c', src: 'https://example.com/x.png' }] }],
  };
  t.throws(() => page([report({ parts: [strips] })]), { message: /not an image within the page/ });
});

test('bars are as long as their values', (t) => {
  const html = page([
    report({
      parts: [
        {
          kind: 'bars',
          title: 'b',
          unit: 'ms',
          bars: [
            { label: 'a', value: 10 },
            { label: 'b', value: 5 },
          ],
        },
      ],
    }),
  ]);
  const widths = [...html.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  t.is(widths.length, 2);
  t.true(Math.abs((widths[0] ?? 0) / (widths[1] ?? 1) - 2) < 0.01);
});

test('axes end at round numbers', (t) => {
  t.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  t.deepEqual(ticks(0, 0.3, 3), [0, 0.1, 0.2, 0.3]);
  t.deepEqual(ticks(4, 4), [4]);
  for (const value of [0.003, 1, 7, 99, 1667, 22_807]) {
    t.true(roundUp(value) >= value);
    t.true(roundUp(value) <= value * 2);
  }
  t.deepEqual(logTicks(0.8, 60), [1, 2, 5, 10, 20, 50]);
});
