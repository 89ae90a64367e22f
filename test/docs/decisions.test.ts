import path from 'node:path';
import test from 'ava';
import { documents, entries, exists, expanded, type Numbered, numbered, read, sources } from './documents.ts';

const decisions = numbered('docs/decisions');
const research = numbered('docs/research');
const numbers = new Map([...decisions, ...research].map((one) => [one.number, one]));

interface Row {
  readonly number: string;
  readonly file: string;
  readonly cells: readonly string[];
}

/** Rows `| [NNNN](file) | … |` of an index. */
const rowsOf = (index: string): Row[] =>
  [...read(index).matchAll(/^\| \[(\d{4})\]\(([^)]+)\) \|(.*)\|$/gm)].map(
    ([, number = '', file = '', rest = '']) => ({
      number,
      file,
      cells: rest.split('|').map((cell) => cell.trim()),
    }),
  );

interface Status {
  readonly kind: 'accepted' | 'changed' | 'superseded';
  readonly by: readonly string[];
}

const list = String.raw`(\d{4}(?:, \d{4})*)`;

/** `accepted`, `accepted, changed by N, …` or `superseded by N, …`. */
function statusOf(text: string): Status | undefined {
  if (text === 'accepted') return { kind: 'accepted', by: [] };
  const [, changed] = new RegExp(`^accepted, changed by ${list}$`).exec(text) ?? [];
  if (changed !== undefined) return { kind: 'changed', by: changed.split(', ') };
  const [, superseded] = new RegExp(`^superseded by ${list}$`).exec(text) ?? [];
  return superseded === undefined ? undefined : { kind: 'superseded', by: superseded.split(', ') };
}

/** The status line below the title of a decision that was changed or superseded. */
function markerOf({ text }: Numbered): Status {
  const [, word, rest = ''] = /^# .*\n\n(Superseded|Changed) by (.*)\.\n/.exec(text) ?? [];
  const by = [...rest.matchAll(/\[(\d{4})\]\(/g)].map(([, number = '']) => number);
  if (word === undefined) return { kind: 'accepted', by };
  return { kind: word === 'Superseded' ? 'superseded' : 'changed', by };
}

const superseded = ({ number }: Numbered): boolean =>
  rowsOf('docs/decisions/README.md').some(
    (row) => row.number === number && statusOf(row.cells[1] ?? '')?.kind === 'superseded',
  );

test('every decision has a unique number, a title and a row of the index', (t) => {
  const index = 'docs/decisions/README.md';
  const rows = rowsOf(index);
  t.true(decisions.length > 50);
  const strange = entries('docs/decisions').filter(
    (file) => file !== 'README.md' && !/^\d{4}-[a-z0-9-]+\.md$/.test(file),
  );
  t.deepEqual(strange, [], 'docs/decisions holds README.md and files named NNNN-short-name.md only');

  const toDo = decisions.flatMap(({ number, file, title }) => {
    const same = [...decisions, ...research].filter((one) => one.number === number);
    if (same.length > 1)
      return [`${same.map(({ name }) => name).join(' and ')} share a number: give one the next free one`];
    if (title === undefined) return [`docs/decisions/${file}: make its first line "# ${number} Title"`];
    const row = rows.find((one) => one.file === file);
    if (row === undefined)
      return [`add to ${index} (choose the area): | [${number}](${file}) | ${title} | accepted | area |`];
    const [given, status = '', area = ''] = row.cells;
    return [
      ...(row.number === number ? [] : [`${index}: the row of ${file} says ${row.number}`]),
      ...(given === title ? [] : [`${index}, ${number}: the file's title is "${title}", not "${given}"`]),
      ...(area === '' ? [`${index}, ${number}: say the area`] : []),
      ...(statusOf(status)
        ? []
        : [
            `${index}, ${number}: the status is "accepted", "accepted, changed by NNNN" or "superseded by NNNN", not "${status}"`,
          ]),
    ];
  });
  t.deepEqual(toDo, []);

  const files = new Set(decisions.map(({ file }) => file));
  const lost = rows.filter(({ file }) => !files.has(file)).map(({ file }) => file);
  t.deepEqual(lost, [], `${index} has rows of files that do not exist`);
  const order = rows.map(({ number }) => number);
  t.deepEqual(order, [...order].sort(), `the rows of ${index} are in the order of their numbers`);
});

test('a decision and the index state the same status', (t) => {
  for (const row of rowsOf('docs/decisions/README.md')) {
    const decision = decisions.find(({ file }) => file === row.file);
    const status = statusOf(row.cells[1] ?? '');
    if (decision === undefined || status === undefined) continue;
    const word = status.kind === 'superseded' ? 'Superseded' : 'Changed';
    const links = status.by.map((number) => `[${number}](${numbers.get(number)?.file ?? '…'})`).join(', ');
    t.deepEqual(
      markerOf(decision),
      status,
      status.kind === 'accepted'
        ? `${decision.name} says that it is superseded or changed, docs/decisions/README.md does not`
        : `${decision.name}: the third line must be "${word} by ${links}."`,
    );
    for (const number of status.by)
      t.true(
        decisions.some((one) => one.number === number),
        `docs/decisions/README.md, ${row.number}: there is no decision ${number}`,
      );
  }
});

test('every research note has a row that names the current decision', (t) => {
  const rows = rowsOf('docs/research/README.md');
  t.true(research.length > 20);
  for (const { number, file, title } of research) {
    const row = rows.find((one) => one.file === file);
    if (row === undefined) {
      t.fail(
        `docs/research/README.md lacks this row: | [${number}](${file}) | ${title} | [NNNN](../decisions/…) |`,
      );
      continue;
    }
    t.is(row.number, number, file);
    t.is(row.cells[0], title, `docs/research/README.md: the title in the row of ${number}`);
    const [, decision = ''] = /^\[\d{4}\]\(\.\.\/decisions\/([^)]+)\)$/.exec(row.cells[1] ?? '') ?? [];
    t.true(exists(`docs/decisions/${decision}`) && decision !== '', `${number} names no decision`);
  }
  t.is(rows.length, research.length, 'docs/research/README.md has a row of a file that does not exist');
});

/** `decision 0179`, `decisions 0159, 0166 and 0185`, `docs/decisions/0108`, `decisions/0145-…`, `docs/research/0096`. */
function citedNumbers(text: string): string[] {
  // Line breaks of a comment do not end a list.
  const flat = text.replace(/\s*\n\s*(?:\/\/\/?|\*|#)?\s*/g, ' ');
  const lists = flat.matchAll(
    /\b[Dd]ecisions? \[?(\d{1,4})\b((?:(?:,| and| or| to| –|, and)+ \[?\d{4}\b(?!\.\d))*)/g,
  );
  const paths = flat.matchAll(/\b(?:decisions|research)\/(\d{4})\b((?:(?:,| and| or| to)+ 0\d{3}\b)*)/g);
  return [...lists, ...paths].flatMap(([, first = '', rest = '']) => [
    first.padStart(4, '0'),
    ...[...rest.matchAll(/\d{4}/g)].map(([number]) => number),
  ]);
}

test('every decision that code or a document cites exists', (t) => {
  let cited = 0;
  const missing: string[] = [];
  for (const { name, text } of [...sources(), ...documents()]) {
    if (name.startsWith('test/docs/')) continue;
    for (const number of citedNumbers(text)) {
      cited++;
      if (!numbers.has(number)) missing.push(`${name} cites decision ${number}`);
    }
    for (const [file] of text.matchAll(/\bdocs\/(?:decisions|research)\/\d{4}-[\w-]+\.md/g))
      if (!exists(file)) missing.push(`${name} cites ${file}`);
  }
  t.deepEqual(missing, [], 'these are neither in docs/decisions nor in docs/research');
  t.true(cited > 150, `only ${cited} citations were found: the pattern has stopped matching`);
});

test('every bare number that a decision or a note cites exists', (t) => {
  // After a space or a bracket: 0170 is a decision, 0.0170 and 0177.0.0.1 are not.
  const missing = [...decisions, ...research].flatMap(({ name, text }) =>
    [...text.matchAll(/(?<=[\s(])(0[0-2]\d{2})(?=[\s,;:)]|\.(?!\d))/g)]
      .filter(([, number = '']) => !numbers.has(number))
      .map(([, number]) => `${name} cites ${number}`),
  );
  t.deepEqual(missing, []);
});

const folders = 'src|native|binding|deploy|test|docs|scripts|web|models|bench|tools';

/** A name without extension means a header and its source. */
const isThere = (name: string): boolean =>
  exists(name) || exists(`${name}.h`) || exists(`${name}.ts`) || exists(`${name}.cc`);

test('every path cited by a document or an accepted decision exists', (t) => {
  let cited = 0;
  const missing: string[] = [];
  for (const { name, text } of documents()) {
    // Research notes and superseded decisions keep the paths of their time.
    if (name.startsWith('docs/research/')) continue;
    const decision = decisions.find((one) => one.name === name);
    if (decision && superseded(decision)) continue;
    const named = text.matchAll(new RegExp(`(?<=[\`(\\s])((?:${folders})/[\\w./{},-]*[\\w}/])`, 'g'));
    for (const [, given = ''] of named)
      for (const one of expanded(given)) {
        // Numbers are checked separately, in both folders; cards name files of the packages that networks come from.
        if (/^docs\/(?:decisions|research)\/\d{4}$/.test(one)) continue;
        if (name.endsWith('/CARD.md') && one.startsWith('models/')) continue;
        cited++;
        if (!isThere(one)) missing.push(`${name} names ${one}`);
      }
  }
  t.deepEqual(missing, []);
  t.true(cited > 200, `only ${cited} paths were found: the pattern has stopped matching`);
});

/** Anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    ),
  );

test('every link between documents leads to a file, and to a heading of it', (t) => {
  let links = 0;
  const missing: string[] = [];
  for (const { name, text } of documents())
    for (const [, target = '', anchor] of text.matchAll(
      /\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)/g,
    )) {
      links++;
      const file = target === '' ? name : path.posix.join(path.posix.dirname(name), target);
      if (!exists(file)) missing.push(`${name} links to ${target}`);
      else if (anchor !== undefined && !anchorsOf(read(file)).has(anchor))
        missing.push(`${name} links to ${file}#${anchor}, which has no such heading`);
    }
  t.deepEqual(missing, []);
  t.true(links > 100, `only ${links} links were found: the pattern has stopped matching`);
});

test('every setting that a document names exists', (t) => {
  const names = /\bCUTOUT_[A-Z0-9]+(?:_[A-Z0-9]+)*\b/g;
  const known = new Set(
    sources()
      .filter(({ name }) => !name.startsWith('test/docs/'))
      .flatMap(({ text }) => [...text.matchAll(names)].map(([name]) => name)),
  );
  const missing = documents()
    // Decisions and research may name settings that were removed.
    .filter(({ name }) => !/^docs\/(decisions|research)\//.test(name))
    .flatMap(({ name, text }) =>
      [...text.matchAll(names)].filter(([one]) => !known.has(one)).map(([one]) => `${name} names ${one}`),
    );
  t.deepEqual(missing, []);
});
