import test from 'ava';
import { formatCredits, standardBilling } from '../../src/billing/price.ts';
import { loadConfig } from '../../src/config/readConfig.ts';
import { tierToReserve } from '../../src/cutout/plan.ts';
import { apiErrors } from '../../src/errors.ts';
import { corsHeaders } from '../../src/http/middleware/cors.ts';
import { cutoutOptions } from '../../src/http/route/cutout/schema.ts';
import { type SizeName, sizeLimits } from '../../src/image/size.ts';
import { documents, read, sources } from './documents.ts';

const contract = read('docs/contract.md');

/** Text from the heading of this number to the next section heading. */
function section(number: string): string {
  const [, rest = ''] = contract.split(new RegExp(`^#{2,3} ${number.replace('.', '\\.')}\\.? .*$`, 'm'));
  return rest.split(/^#{2,3} \d/m)[0] ?? '';
}

const cellsOf = (text: string): string[][] =>
  [...text.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) => row.split(' | ').map((cell) => cell.trim()));

/** Words in backquotes. */
const words = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

test('section 10 lists every error of the API under its status and title, and no other', (t) => {
  const documented = new Map<string, { status: number; title: string }[]>();
  const add = (code: string, status: number, title: string) =>
    documented.set(code, [...(documented.get(code) ?? []), { status, title }]);
  for (const [codes = '', title = ''] of cellsOf(section('10.1')))
    for (const code of words(codes))
      add(code, 400, title.replace('{field}', code.replace('invalid_', '')).replace(/ \(.*\)$/, ''));
  for (const [status = '', codes = '', title = ''] of cellsOf(section('10.2')))
    for (const code of words(codes)) add(code, Number.parseInt(status, 10), title.replace(/ \([A-Z]\)$/, ''));

  // 499 is for the log only: the client is gone.
  const answered = apiErrors.filter(({ status }) => status !== 499);
  for (const { code, status, title } of answered)
    t.true(
      documented.get(code)?.some((one) => one.status === status && one.title === title),
      `docs/contract.md section 10 lacks ${status} ${code} "${title}", or says it otherwise: ${JSON.stringify(documented.get(code))}`,
    );
  const known = new Set(answered.map(({ code }) => code));
  t.deepEqual(
    [...documented.keys()].filter((code) => !known.has(code)),
    [],
    'docs/contract.md names errors that src/errors.ts does not have',
  );
});

test('section 4 lists the options in the order of their checks, with every word they accept', (t) => {
  const rows = cellsOf(section('4')).filter(([, grammar = '']) => grammar !== 'grammar');
  const options = rows.flatMap(([field = '', ...rest]) =>
    words(field)
      .slice(0, 1)
      .map((name) => ({ name, rest })),
  );
  const documented = options.filter(({ name }) => Object.hasOwn(cutoutOptions, name));
  t.deepEqual(
    documented.map(({ name }) => name),
    Object.keys(cutoutOptions),
  );
  for (const { name, rest } of documented) {
    const [grammar = '', , codes = ''] = rest;
    const field = Object.entries(cutoutOptions).find(([one]) => one === name)?.[1];
    t.true(words(codes).includes(field?.invalid ?? ''), `${name}: ${codes}`);
    const accepted = (field?.schema.meta() as { enum?: readonly string[] } | undefined)?.enum;
    if (accepted !== undefined && grammar !== 'boolean')
      t.deepEqual(
        accepted.filter((word) => !words(grammar).includes(word)),
        [],
        `docs/contract.md section 4, ${name}`,
      );
  }
});

test('section 5 lists every size with its limit and price, and the free calls', (t) => {
  const rows = cellsOf(section('5'));
  const { prices, freePreviews } = standardBilling;
  for (const [name, maxPixels] of Object.entries(sizeLimits)) {
    const tier = tierToReserve({ size: name as SizeName }, { width: 10_000, height: 5000 });
    if (tier === 'auto') throw new Error('only `auto` is reserved as that');
    const [, limit = '', price = ''] = rows.find(([size = '']) => words(size)[0] === name) ?? [];
    t.is(Number.parseFloat(limit) * 1e6, maxPixels, name);
    t.is(/[\d.]+(?=\W*$)/.exec(price)?.[0], formatCredits(prices[tier]), name);
  }
  t.regex(
    section('5'),
    new RegExp(`Free calls: ${freePreviews.perMonth} a month, at most ${freePreviews.perDay} a day`),
  );
  t.regex(section('11'), new RegExp(`^${loadConfig({}).limits.rate} megapixel-images a minute`, 'm'));
});

test('section 2 lists the headers that pages of other origins may read', (t) => {
  const [, documented = ''] =
    /`Access-Control-Expose-Headers: ([^`]+)`/.exec(section('2').replace(/\n/g, ' ')) ?? [];
  t.is(documented, corsHeaders['Access-Control-Expose-Headers'] ?? 'not sent');
});

test('every cited section of contract and matting exists', (t) => {
  const headings = (file: string) =>
    new Set([...read(file).matchAll(/^#{2,3} (\d+(?:\.\d+)?)/gm)].map(([, number = '']) => number));
  const known = { contract: headings('docs/contract.md'), matting: headings('docs/matting.md') };
  const cited = { contract: 0, matting: 0 };
  const missing: string[] = [];
  for (const { name, text } of [...sources(), ...documents()]) {
    if (name.startsWith('test/docs/')) continue;
    const flat = text.replace(/\s*\n\s*(?:\/\/\/?|\*|#)?\s*/g, ' ');
    // Names in capitals are those under which code cited these pages earlier.
    for (const [, page = '', first = '', more = ''] of flat.matchAll(
      /\b(CONTRACT|MATTING|contract\.md\)?|matting\.md\)?),?(?: sections?)? (\d+(?:\.\d+)?)((?:(?:,| and) \d+(?:\.\d+)?)*)/g,
    )) {
      const which = page.toLowerCase().startsWith('contract') ? 'contract' : 'matting';
      for (const [number] of `${first} ${more}`.matchAll(/\d+(?:\.\d+)?/g)) {
        cited[which]++;
        if (!known[which].has(number)) missing.push(`${name} cites ${which} section ${number}`);
      }
    }
  }
  t.deepEqual(missing, []);
  t.true(
    cited.contract > 30,
    `only ${cited.contract} citations were found: the pattern has stopped matching`,
  );
  t.true(cited.matting > 0);
});
