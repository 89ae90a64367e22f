import { apiErrors } from '../../errors.ts';
import type { Properties, Schema } from './bodies.ts';
import type { OpenApi, Operation } from './document.ts';
import { languages, type Request } from './programs.ts';
import type { Header, ResponseObject } from './responses.ts';
import { style } from './style.ts';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const html = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');
const code = (text: string): string => `<code>${html(text)}</code>`;
const codes = (texts: readonly unknown[]): string => texts.map((text) => code(String(text))).join(' ');
/** Text with `code` in backticks, and paragraphs at empty lines. */
const prose = (text: string): string =>
  text
    .split('\n\n')
    .map((paragraph) => `<p>${html(paragraph).replace(/`([^`]+)`/g, '<code>$1</code>')}</p>`)
    .join('');

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const row = (tag: 'th' | 'td', cells: readonly string[]) =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<div class="wide" tabindex="0"><table><thead>${row('th', head)}</thead><tbody>${rows.map((cells) => row('td', cells)).join('\n')}</tbody></table></div>`;
};

/** The words of a field, or examples of its grammar. */
function values({ enum: words, examples, contentMediaType, contentEncoding, format }: Schema): string {
  if (contentMediaType) return '<span class="soft">file, multipart only</span>';
  if (words) return codes(words);
  if (examples) return `<span class="soft">e.g.</span> ${codes(examples)}`;
  return `<span class="soft">${html(contentEncoding ?? format ?? 'text')}</span>`;
}

const fieldRows = ({ properties = {}, patternProperties = {} }: Schema): string[][] =>
  Object.entries(properties).map(([name, schema]) => {
    const each = Object.keys(patternProperties).some((pattern) => pattern.startsWith(`^${name}\\[`));
    return [
      code(name) + (each ? `<br>${code(`${name}[person]`)} …` : ''),
      html(schema.description ?? ''),
      values(schema),
      schema.default === undefined ? '' : code(String(schema.default)),
      codes(schema['x-error-codes'] ?? []),
    ];
  });

const headerRows = (headers: Readonly<Record<string, Header>>): string[][] =>
  Object.entries(headers).map(([name, { description }]) => [code(name), html(description)]);

const errorRow = ([status, { description, headers = {} }]: readonly [string, ResponseObject]): string[] => [
  code(status),
  prose(description),
  codes(Object.keys(headers).filter((name) => name !== 'X-Request-Id')),
];

/** Members of a JSON answer, nested ones with their path: `data.attributes.credits.total`. */
function leaves(properties: Properties, way = ''): string[] {
  return Object.entries(properties).flatMap(([name, { properties: inner }]) =>
    inner ? leaves(inner, `${way}${name}.`) : [way + name],
  );
}

function success(document: OpenApi, { description, content = {}, headers = {} }: ResponseObject): string {
  const refs = Object.values(content).flatMap(({ schema }) => (schema.$ref ? [schema.$ref] : []));
  const members = refs.flatMap((ref) =>
    leaves(document.components.schemas[ref.split('/').at(-1) ?? '']?.properties ?? {}),
  );
  return [
    '<h3>Answer 200</h3>',
    prose(description),
    `<p>${codes(Object.keys(content))}${members.length > 0 ? `, JSON with ${codes(members)}` : ''}</p>`,
    table(['Header', 'Meaning'], headerRows(headers)),
  ].join('\n');
}

interface Described {
  readonly paths: readonly string[];
  readonly method: string;
  readonly operation: Operation;
}

/** Operations with the same definition under several paths are shown together, under the first. */
function sections(document: OpenApi): Described[] {
  const found = new Map<string, Described>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { operationId: _, summary: __, ...rest } = operation;
      const content = JSON.stringify([method, rest]);
      const same = found.get(content);
      if (same) found.set(content, { ...same, paths: [...same.paths, path] });
      else found.set(content, { paths: [path], method, operation });
    }
  }
  return [...found.values()];
}

function section(document: OpenApi, { paths, method, operation }: Described): string {
  const { summary, description, parameters = [], requestBody, responses, security } = operation;
  const form = requestBody?.content['multipart/form-data']?.schema;
  const { 200: done, ...errors } = responses;
  const [first = '', ...others] = paths;
  return [
    `<section id="${operation.operationId}"><h2>${code(`${method.toUpperCase()} ${first}`)}</h2>`,
    prose(`${summary}.`),
    others.length > 0 ? `<p>Also as ${codes(others)}, which is identical.</p>` : '',
    description ? prose(description) : '',
    prose(security.length === 0 ? 'Needs no key.' : 'Needs a key.'),
    requestBody ? `<h3>Request</h3><p>Body as ${codes(Object.keys(requestBody.content))}.</p>` : '',
    form ? table(['Field', 'Meaning', 'Values', 'Default', 'Errors'], fieldRows(form)) : '',
    parameters.length > 0
      ? table(
          ['Request header', 'Meaning'],
          parameters.map(({ name, description: meaning }) => [code(name), html(meaning)]),
        )
      : '',
    done ? success(document, done) : '',
    Object.keys(errors).length > 0
      ? `<h3>Errors</h3>${table(['Status', 'Codes', 'Headers'], Object.entries(errors).map(errorRow))}`
      : '',
    '</section>',
  ].join('\n');
}

const errorRows = (): string[][] =>
  apiErrors
    .filter(({ status }) => status !== 499)
    .map(({ status, code: name, title, detail }) => [
      code(name),
      code(String(status)),
      html(title),
      html(detail),
    ]);

/** Placeholder for the address while the page is generated; occurs nowhere in the description. */
const addressMark = 'https://address.invalid';

const sample: Request = {
  address: addressMark,
  path: '/v1.0/cutout',
  image: { kind: 'file', name: 'photo.jpg' },
  fields: [['size', 'auto']],
  files: [],
  headers: [],
  out: 'cutout.png',
};

/** The reference as one page without scripts and external resources; the function inserts the service's address. */
export function referencePage(document: OpenApi): (address: string) => string {
  const pieces = pageFor(document).split(addressMark);
  return (address) => pieces.join(html(address));
}

function pageFor(document: OpenApi): string {
  const { title, description, version } = document.info;
  const all = sections(document);
  const links = all.map(
    ({ paths, operation }) => `<a href="#${operation.operationId}">${html(paths[0] ?? '')}</a>`,
  );
  const programs = languages.map(
    ({ name, id, write }) =>
      `<h3>${html(name)}</h3><pre id="sample-${id}" tabindex="0">${html(write(sample))}</pre>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${html(title)} API</title>
<style>${style}</style>
</head>
<body>
<header><h1>${html(title)} API <small>${html(version)}</small></h1>
${prose(description)}</header>
<nav><a href="./">Playground</a> <a href="#start">Start</a> ${links.join(' ')} <a href="#errors">Errors</a> <a href="openapi.json">openapi.json</a></nav>
<section id="start"><h2>Start</h2>
${prose('The key goes into the header `X-Api-Key`, or into `Authorization: Bearer`. The samples read it from `CUTOUT_KEY`.')}
${programs.join('\n')}
</section>
${all.map((each) => section(document, each)).join('\n')}
<section id="errors"><h2>All errors</h2>
${prose('Every error is one object: `{"errors":[{"title":"…","code":"…","detail":"…"}]}`. Errors are never charged. The detail says what was received where that helps; the table has the default one.')}
${table(['Code', 'Status', 'Title', 'Detail'], errorRows())}
</section>
</body>
</html>
`;
}
