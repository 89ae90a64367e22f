// biome-ignore-all lint/suspicious/noTemplateCurlyInString: as it stands in Dockerfiles
import { readFileSync } from 'node:fs';
import test from 'ava';
import { expand, pairs, parseDockerfile } from '../../scripts/image/dockerfile.js';
import { inRoot } from '../../scripts/setup/paths.js';

const read = (name) => readFileSync(inRoot('deploy', name), 'utf8');
const of = (stage, op) => stage.steps.filter((step) => step.op === op).map(({ text }) => text);

test('stages, their bases and their steps, with arguments put in', (t) => {
  const text = [
    '# a comment',
    'ARG BASE=one',
    'FROM ${BASE}-slim AS build',
    'RUN first \\',
    '  && second',
    'FROM other',
    'COPY --from=build /a /b',
  ].join('\n');
  t.deepEqual(parseDockerfile(text), [
    { name: 'build', base: 'one-slim', steps: [{ op: 'RUN', text: 'first    && second' }] },
    { name: '1', base: 'other', steps: [{ op: 'COPY', text: '--from=build /a /b' }] },
  ]);
  t.is(parseDockerfile(text, { BASE: 'two' })[0].base, 'two-slim');
  t.throws(() => parseDockerfile('FROM a\nADD x y'), { message: /ADD x y/ });
  t.throws(() => parseDockerfile('# nothing'), { message: /no FROM/ });
});

test('values', (t) => {
  t.is(expand('a $B ${C}d $E', { B: '1', C: '2' }), 'a 1 2d ');
  t.deepEqual(pairs('A=1 B="two words" C='), { A: '1', B: 'two words', C: '' });
});

for (const file of ['Dockerfile', 'Dockerfile.cuda'])
  test(`${file}: not root, a health check, one folder to write to, no network in it by itself`, (t) => {
    const stages = parseDockerfile(read(file));
    const last = stages.at(-1);
    t.deepEqual(of(last, 'USER'), ['10001:10001']);
    t.deepEqual(of(last, 'VOLUME'), ['/data']);
    t.is(of(last, 'HEALTHCHECK').length, 1);
    t.deepEqual(of(last, 'ENTRYPOINT'), ['["/opt/cutout/deploy/image/entrypoint.sh"]']);
    t.deepEqual(of(last, 'ARG').at(-1), 'NETWORKS=""');
    const env = pairs(of(last, 'ENV').join(' '));
    t.is(env.CUTOUT_DATA_DIR, '/data');
    t.falsy(Object.keys(env).find((name) => /KEY|TOKEN|SECRET|PASSWORD/.test(name)));
    // The user comes last: what is installed belongs to root.
    const ops = last.steps.map(({ op }) => op);
    t.true(ops.lastIndexOf('RUN') < ops.indexOf('USER'));
  });

test('both images are set up by the same scripts', (t) => {
  const runs = (file) => parseDockerfile(read(file)).flatMap((stage) => of(stage, 'RUN'));
  t.deepEqual(runs('Dockerfile.cuda'), [
    'sh deploy/image/build.sh /opt/cutout cuda12',
    'sh /opt/cutout/deploy/image/install.sh ${NETWORKS}',
  ]);
  t.deepEqual(
    runs('Dockerfile'),
    runs('Dockerfile.cuda').map((line) => line.replace(' cuda12', '')),
  );
});
