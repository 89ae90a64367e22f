import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { describeConfig, loadConfig } from '../../src/config/readConfig.ts';
import { root, temporaryFolder } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';
import { everyMetric } from '../support/metrics.ts';
import { promtool, promtoolMissing, samplesOf } from '../support/prometheus.ts';

const deploy = (...parts: string[]) => path.join(root, 'deploy', ...parts);
const rules = readFileSync(deploy('prometheus', 'alerts.yml'), 'utf8');
const dashboard = readFileSync(deploy('grafana', 'cutout.json'), 'utf8');

/** Metrics and their labels in an expression: `name{a="…",b=~"…"}`. */
const asked = (text: string): [name: string, labels: string[]][] =>
  [...text.matchAll(/\b((?:cutout|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', labels = '']) => [
      name,
      [...labels.matchAll(/(\w+)\s*(?:=|!=)~?"/g)].map(([, label = '']) => label),
    ],
  );

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const panels = (JSON.parse(dashboard) as { panels: Panel[] }).panels;
const expressions = [...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)), rules];

test('every metric and label of dashboard and alerts exists', async (t) => {
  const known = new Map<string, Set<string>>();
  for (const sample of samplesOf(await everyMetric().text()).keys()) {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    const of = known.get(name) ?? new Set(['instance', 'job']);
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) of.add(label);
    known.set(name, of);
  }
  let checked = 0;
  for (const expression of expressions) {
    for (const [name, labels] of asked(expression)) {
      const has = known.get(name);
      t.truthy(has, `${name} of ${expression}`);
      for (const label of labels) t.true(has?.has(label), `${name}{${label}}`);
      checked += 1;
    }
  }
  t.true(checked > 60, String(checked));
});

test('the values that labels are compared with can occur', (t) => {
  const reasons = /export type Reason =([\s\S]*?);/.exec(
    readFileSync(path.join(root, 'src/errors.ts'), 'utf8'),
  );
  for (const [, wanted = ''] of expressions.join('\n').matchAll(/reason=~?"([^"]+)"/g))
    for (const reason of wanted.split('|')) t.true(reasons?.[1]?.includes(`'${reason}'`), reason);
});

test('every setting named in deploy/ exists', (t) => {
  const known = new Set(describeConfig(loadConfig({})).map(({ variable }) => variable));
  const files = readdirSync(deploy(), { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  );
  t.true(files.length > 15);
  for (const { name, parentPath } of files) {
    const text = readFileSync(path.join(parentPath, name), 'utf8');
    for (const [variable] of text.matchAll(/\bCUTOUT_(?!TEST_)[A-Z0-9_]+\b(?!…)/g))
      t.true(known.has(variable), `${variable} in ${name}`);
  }
});

test('every panel has a description', (t) => {
  for (const { title } of panels) t.true(title.length > 3);
  t.is(new Set(panels.map(({ title }) => title)).size, panels.length);
});

test('every alert has an explanation for its recipient', (t) => {
  const guide = readFileSync(path.join(root, 'docs', 'operations.md'), 'utf8');
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  t.true(alerts.length > 10);
  for (const alert of alerts) t.regex(guide, new RegExp(`^\\| \`${alert}\` \\|`, 'm'), alert);
});

unless(promtoolMissing)('promtool: rules are right, and fire when they should', (t) => {
  const folder = deploy('prometheus');
  t.deepEqual(readdirSync(folder).sort(), ['alerts.test.yml', 'alerts.yml', 'compose.yml', 'prometheus.yml']);
  for (const args of [
    ['check', 'rules', path.join(folder, 'alerts.yml')],
    ['check', 'config', path.join(folder, 'prometheus.yml')],
    ['test', 'rules', path.join(folder, 'alerts.test.yml')],
  ]) {
    const { status, said } = promtool(args);
    t.is(status, 0, said);
  }
});

/** Only Prometheus can validate a query; `promtool check rules` reads them as rules. */
unless(promtoolMissing)('promtool: every query of the dashboard can be read', (t) => {
  const queries = panels
    .flatMap(({ targets = [] }) => targets)
    .map(({ expr }, index) => {
      const plain = expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*');
      return `    - record: dashboard:query${index}\n      expr: ${JSON.stringify(plain)}`;
    });
  const file = `groups:\n  - name: dashboard\n    rules:\n${queries.join('\n')}\n`;
  const written = path.join(temporaryFolder(t), 'dashboard.yml');
  writeFileSync(written, file);
  const { status, said } = promtool(['check', 'rules', written]);
  t.is(status, 0, said);
});
