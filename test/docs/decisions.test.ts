import path from 'node:path';
import test from 'ava';
import {
  type Decision,
  decisions,
  documents,
  entries,
  exists,
  expanded,
  read,
  sources,
} from './documents.ts';

const index = 'docs/decisions/README.md';
const all = decisions();
const numbers = new Set(all.map(({ number }) => number));

const LONGEST_LINE = 140;
const MOST_LINES = 12;

/** What is wrong with the form of one decision. */
function formFaults({ name, number, lines }: Decision): string[] {
  const long = lines.filter((line) => Array.from(line).length > LONGEST_LINE);
  return [
    ...(lines.length > 0 ? [] : [`${name}, ${number} says nothing`]),
    ...(lines.length <= MOST_LINES ? [] : [`${name}, ${number} has ${lines.length} lines`]),
    ...long.map((line) => `${name}, ${number}: a line of ${Array.from(line).length} characters: ${line}`),
  ];
}

test('every decision has a number of its own and at most 12 lines of 140 characters', (t) => {
  t.true(all.length > 100, `only ${all.length} decisions were found: the pattern has stopped matching`);
  const order = all.map(({ number }) => number).sort();
  const twice = order.filter((number, place) => number === order[place - 1]);
  t.deepEqual(twice, [], 'these numbers are headings twice');
  t.deepEqual(all.flatMap(formFaults), []);
});

test('every file of decisions has a row of the index and nothing but decisions under its headings', (t) => {
  const files = entries('docs/decisions').filter((file) => file !== 'README.md');
  const rows = [...read(index).matchAll(/^\| \[([\w.]+)\]\(([\w.]+)\) \|/gm)].map(([, , file = '']) => file);
  t.deepEqual([...rows].sort(), files, `the rows of ${index} and the files beside it differ`);
  t.true(read(index).split('\n').length <= 40, `${index} has more than 40 lines`);
  for (const file of files) {
    const own = all.filter(({ name }) => name === `docs/decisions/${file}`);
    const headings = [...read(`docs/decisions/${file}`).matchAll(/^##+ .*$/gm)];
    t.is(own.length, headings.length, `docs/decisions/${file} has a heading that is not "## NNNN Title"`);
    const order = own.map(({ number }) => number);
    t.deepEqual(order, [...order].sort(), `docs/decisions/${file} is in the order of its numbers`);
  }
});

/** `decision 0179`, `decisions 0159, 0166 and 0185`, `decisions [0145](decisions/store.md) to …`, `docs/decisions/0108`. */
function citedNumbers(text: string): string[] {
  // Line breaks of a comment do not end a list; the target of a link is not part of it.
  const flat = text
    .replace(/\s*\n\s*(?:\/\/\/?|\*|#)?\s*/g, ' ')
    .replace(/\[([\w ]+)\]\((?!\d)[^)]*\)/g, '$1');
  const lists = flat.matchAll(
    /\b[Dd]ecisions?[ /](\d{1,4})\b((?:(?:,| and| or| to| –|, and)+ \d{4}\b(?!\.\d))*)/g,
  );
  return [...lists].flatMap(([, first = '', rest = '']) => [
    first.padStart(4, '0'),
    ...[...rest.matchAll(/\d{4}/g)].map(([number]) => number),
  ]);
}

test('citations are found in every form', (t) => {
  const cited = (text: string) => citedNumbers(text);
  t.deepEqual(cited('(decision 0179)'), ['0179']);
  t.deepEqual(cited(' * by decisions 0159, 0166\n * and 0185.'), ['0159', '0166', '0185']);
  t.deepEqual(cited('see docs/decisions/0011 and 0080.'), ['0011', '0080']);
  t.deepEqual(cited('[decision 0230](decisions/packaging.md)'), ['0230']);
  t.deepEqual(cited('decisions [0145](decisions/store.md) to [0149](decisions/operations.md)'), [
    '0145',
    '0149',
  ]);
  t.deepEqual(cited('decision 10'), ['0010']);
  t.deepEqual(cited('a decision of 2026, by 0.0170'), []);
});

test('every decision that code or a document cites exists', (t) => {
  let found = 0;
  const missing: string[] = [];
  for (const { name, text } of [...sources(), ...documents()]) {
    if (name.startsWith('test/docs/')) continue;
    for (const number of citedNumbers(text)) {
      found++;
      if (!numbers.has(number)) missing.push(`${name} cites decision ${number}`);
    }
    if (text.includes('docs/research')) missing.push(`${name} cites docs/research, which is docs/tried.md`);
  }
  t.deepEqual(missing, [], 'no heading "## NNNN …" below docs/decisions has these numbers');
  t.true(found > 100, `only ${found} citations were found: the pattern has stopped matching`);
});

test('every bare number that a document cites is a decision', (t) => {
  let found = 0;
  // After a space or a bracket: 0170 is a decision, 0.0170 and 0177.0.0.1 are not.
  const missing = documents()
    .filter(({ name }) => name.startsWith('docs/'))
    .flatMap(({ name, text }) =>
      [...text.matchAll(/(?<=[\s(])(0[0-9]\d{2})(?=[\s,;:)]|\.(?!\d))/g)]
        .map(([, number = '']) => number)
        .filter((number) => {
          found++;
          return !numbers.has(number);
        })
        .map((number) => `${name} cites ${number}`),
    );
  t.deepEqual(missing, []);
  t.true(found > 100, `only ${found} numbers were found: the pattern has stopped matching`);
});

const folders = 'src|native|binding|deploy|test|docs|scripts|web|models|bench|tools';

/** A name without extension means a header and its source. */
const isThere = (name: string): boolean =>
  exists(name) || exists(`${name}.h`) || exists(`${name}.ts`) || exists(`${name}.cc`);

test('every path cited by a document exists', (t) => {
  let cited = 0;
  const missing: string[] = [];
  for (const { name, text } of documents()) {
    const named = text.matchAll(new RegExp(`(?<=[\`(\\s])((?:${folders})/[\\w./{},-]*[\\w}/])`, 'g'));
    for (const [, given = ''] of named)
      for (const one of expanded(given)) {
        // Numbers are checked separately; cards name files of the packages that networks come from.
        if (/^docs\/decisions\/\d{4}$/.test(one)) continue;
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
  const missing = documents().flatMap(({ name, text }) =>
    [...text.matchAll(names)].filter(([one]) => !known.has(one)).map(([one]) => `${name} names ${one}`),
  );
  t.deepEqual(missing, []);
});
