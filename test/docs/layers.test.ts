import test from 'ava';
import { read, sources } from './documents.ts';
import { arrowsOf, layerFaults, layersOf } from './layers.ts';

const architecture = read('docs/architecture.md');

test('every import is allowed by docs/architecture.md, and there is no import cycle', (t) => {
  t.deepEqual(layerFaults(architecture, sources()), []);
});

test('the reader finds the layers and the imports of this repository', (t) => {
  t.true(layersOf(architecture).length > 30);
  const arrows = arrowsOf(sources());
  t.true(arrows.length > 2000, `only ${arrows.length} imports were found: a pattern has stopped matching`);
  for (const [from, to] of [
    ['src/main.ts', 'src/folder.ts'],
    ['native/pipeline/engine.cc', 'native/pipeline/engine.h'],
    ['binding/arguments.h', 'native/pipeline/engine.h'],
  ])
    t.true(
      arrows.some((arrow) => arrow.from === from && arrow.to === to),
      `${from} → ${to} was not found`,
    );
});

const table = (rows: readonly string[]) =>
  `# A\n\n## Folders\n\n${rows.join('\n')}\n\n## B\n\n| \`c\` | d | e |\n`;

const rows = [
  '| `test/` | tests | everything below |',
  '| `src/main.ts` | start | `src/upper/` |',
  '| `src/upper/` | use | `src/lower/face.ts` |',
  '| `src/lower/` | base | – |',
];

/** A tree that follows its table; `more` adds or replaces files. */
function tree(more: Readonly<Record<string, string>> = {}) {
  const files = {
    'test/main.test.ts': "import '../src/main.ts';\n",
    'src/main.ts': "import { use } from './upper/use.ts';\n",
    'src/upper/use.ts': "import {\n  type Face,\n} from '../lower/face.ts';\n",
    'src/lower/face.ts': "import fs from 'node:fs';\nexport * from './more.ts';\n",
    'src/lower/more.ts': 'export interface Face {}\n',
    ...more,
  };
  return Object.entries(files).map(([name, text]) => ({ name, text }));
}

const faults = (more: Readonly<Record<string, string>>, lines = rows) =>
  layerFaults(table(lines), tree(more));

test('a tree that follows its table has no faults', (t) => {
  t.deepEqual(faults({}), []);
});

/** Split in two, because this file is read as well. */
const dynamic = (specifier: string) => `${'import'}('${specifier}')`;

for (const [kind, text] of Object.entries({
  'a value': "\nimport { use } from '../upper/use.ts';\n",
  'a type': "\nimport type { Use } from '../upper/use.ts';\n",
  'its effects': "\nimport '../upper/use.ts';\n",
  'several lines': "\nimport {\n  one,\n  two,\n} from '../upper/use.ts';\n",
  'an export': "\nexport { use } from '../upper/use.ts';\n",
  'all exports': "\nexport * from '../upper/use.ts';\n",
  'a later value': `\nconst later = await ${dynamic('../upper/use.ts')};\n`,
  'the type of a later value': `\ntype Later = typeof ${dynamic('../upper/use.ts')};\n`,
  'a compiled file': `\nawait ${dynamic('../../build/ts/src/upper/use.js')};\n`,
}))
  test(`an import that no row allows is found: ${kind}`, (t) => {
    const [fault, ...others] = faults({ 'src/lower/other.ts': text });
    t.is(fault, 'src/lower/other.ts:2 imports src/upper/use.ts: src/lower/ may import nothing');
    t.deepEqual(others, []);
  });

test('a row may allow a single file of a folder', (t) => {
  const imports = "import type { Face } from '../lower/face.ts';\nimport '../lower/more.ts';\n";
  t.deepEqual(faults({ 'src/upper/use.ts': imports }), [
    'src/upper/use.ts:2 imports src/lower/more.ts: src/upper/ may import src/lower/face.ts',
  ]);
});

test('`everything below` excludes the rows above', (t) => {
  t.deepEqual(faults({ 'src/main.ts': "import './upper/use.ts';\nimport '../test/main.test.ts';\n" }), [
    'src/main.ts:2 imports test/main.test.ts: src/main.ts may import src/upper/',
    'files in a circle: test/main.test.ts → src/main.ts → test/main.test.ts',
  ]);
  const all = [
    '| `src/main.ts` | start | everything below |',
    ...rows.filter((row) => !row.includes('main')),
  ];
  t.deepEqual(faults({ 'test/main.test.ts': "import '../src/main.ts';\n" }, all), [
    'test/main.test.ts:1 imports src/main.ts: test/ may import rows below it',
  ]);
});

test('an import cycle within a folder is found once, types included', (t) => {
  const files = {
    'src/lower/more.ts': "import type { A } from './a.ts';\n",
    'src/lower/a.ts': "import type { B } from './b.ts';\n",
    'src/lower/b.ts': "import './face.ts';\n",
  };
  t.deepEqual(faults(files), [
    'files in a circle: src/lower/face.ts → src/lower/more.ts → src/lower/a.ts → src/lower/b.ts → src/lower/face.ts',
  ]);
  t.deepEqual(faults({ 'src/lower/more.ts': "import './more.ts';\n" }), [
    'files in a circle: src/lower/more.ts → src/lower/more.ts',
  ]);
});

test('quoted includes are read from the file and from the roots', (t) => {
  const lines = ['| `binding/` | face | `native/core/` |', '| `native/core/` | base | – |'];
  const files = [
    { name: 'binding/a.cc', text: '#include <vector>\n#include "a.h"\n#include "core/b.h"\n' },
    { name: 'binding/a.h', text: '#pragma once\n' },
    { name: 'native/core/b.h', text: '#pragma once\n' },
  ];
  t.deepEqual(layerFaults(table(lines), files), []);
  const upward = { name: 'native/core/c.cc', text: '\n#include "../../binding/a.h"\n#include "gone.h"\n' };
  t.deepEqual(layerFaults(table(lines), [...files, upward]), [
    'native/core/c.cc:2 imports binding/a.h: native/core/ may import nothing',
    'native/core/c.cc:3 imports gone.h, which does not exist',
  ]);
});

test('a folder without a row and a row without a folder are found', (t) => {
  t.deepEqual(faults({ 'src/new/file.ts': '' }), ['src/new/file.ts is in no row of the table']);
  t.deepEqual(faults({}, [...rows, '| `src/gone/` | nothing | – |']), [
    'the table has a row for src/gone/, which holds no code',
  ]);
  t.deepEqual(faults({}, [...rows, '| `src/lower/` | again | – |']), [
    'the table has two rows for src/lower/',
  ]);
});

test('the table allows no import upwards and none that is not needed', (t) => {
  t.deepEqual(faults({}, [...rows.slice(0, 3), '| `src/lower/` | base | `src/upper/` |']), [
    'the table lets src/lower/ import src/upper/, which is in no row below it',
    'the table lets src/lower/ import src/upper/, which it does not',
  ]);
  const wide = ['| `src/main.ts` | start | `src/upper/`, `src/lower/` |'];
  t.deepEqual(faults({}, [...rows.slice(0, 1), ...wide, ...rows.slice(2)]), [
    'the table lets src/main.ts import src/lower/, which it does not',
  ]);
});

test('an import of a missing file is a fault, one of a package is not', (t) => {
  t.deepEqual(faults({ 'src/lower/other.ts': "import 'koa';\nimport './gone.ts';\n" }), [
    'src/lower/other.ts:2 imports ./gone.ts, which does not exist',
  ]);
});
