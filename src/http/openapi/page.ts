import { catalogue } from '../../errors.ts';
import type { Answer } from './answers.ts';
import type { OpenApi, Operation } from './document.ts';
import type { Schema } from './fields.ts';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const html = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');
const code = (text: string): string => `<code>${html(text)}</code>`;
/** Text with `code` in backticks and paragraphs at empty lines. */
const prose = (text: string): string =>
  text
    .split('\n\n')
    .map((paragraph) => `<p>${html(paragraph).replace(/`([^`]+)`/g, '<code>$1</code>')}</p>`)
    .join('');

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const row = (tag: 'th' | 'td', cells: readonly string[]) =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<div class="wide"><table><thead>${row('th', head)}</thead><tbody>${rows.map((cells) => row('td', cells)).join('\n')}</tbody></table></div>`;
};

const values = ({ enum: words, examples }: Schema): string =>
  (words ?? examples ?? []).map((word) => code(String(word))).join(' ');

const fieldRows = ({ properties = {}, patternProperties = {} }: Schema): string[][] =>
  Object.entries(properties).map(([name, schema]) => {
    const each = Object.keys(patternProperties).some((pattern) => pattern.startsWith(`^${name}\\[`));
    return [
      code(name) + (each ? `<br>${code(`${name}[person]`)} …` : ''),
      schema.contentMediaType ? 'file (multipart only)' : values(schema),
      schema.default === undefined ? '' : code(String(schema.default)),
      html(schema.description ?? ''),
    ];
  });

const answerRow = ([status, { description, content = {}, headers = {} }]: readonly [string, Answer]) => [
  code(status),
  prose(description),
  Object.keys(content).map(code).join(' '),
  Object.keys(headers).map(code).join(' '),
];

function operation(path: string, method: string, described: Operation): string {
  const { summary, description, requestBody, responses, operationId, security } = described;
  const form = requestBody?.content['multipart/form-data']?.schema;
  return [
    `<section id="${operationId}"><h2>${code(`${method.toUpperCase()} ${path}`)}</h2>`,
    prose(summary),
    description ? prose(description) : '',
    security.length === 0 ? prose('Needs no key.') : '',
    requestBody ? `<p>Body: ${Object.keys(requestBody.content).map(code).join(', ')}.</p>` : '',
    form ? table(['Field', 'Values', 'Default', 'Meaning'], fieldRows(form)) : '',
    table(['Status', 'Answer', 'Types', 'Headers'], Object.entries(responses).map(answerRow)),
    '</section>',
  ].join('\n');
}

const style = `
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
code,pre{font:.875em ui-monospace,monospace}
pre{padding:1rem;overflow-x:auto;border:1px solid #8884}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:1rem 0;width:100%}
th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid #8884}
td p{margin:0 0 .3rem}
nav a{margin-right:1rem}`;

/** The reference as one page: no scripts, nothing loaded from elsewhere. */
export function referencePage(document: OpenApi, address: string): string {
  const { title, description, version } = document.info;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method, described })),
  );
  const links = operations.map(
    ({ path, described }) => `<a href="#${described.operationId}">${html(path)}</a>`,
  );
  const errors = Object.values(catalogue)
    .filter(({ status }) => status !== 499)
    .map(({ status, code: name, title: said, detail }) => [
      code(String(status)),
      code(name),
      html(said),
      html(detail),
    ]);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${html(title)} API</title>
<style>${style}</style>
</head>
<body>
<h1>${html(title)} API ${html(version)}</h1>
${prose(description)}
<nav>${links.join(' ')} <a href="#errors">errors</a> <a href="openapi.json">openapi.json</a></nav>
<h2>In one line</h2>
<pre id="example">${html(`curl -H "X-Api-Key: $CUTOUT_KEY" -F image_file=@photo.jpg -F size=auto -o cutout.png ${address}/v1.0/cutout`)}</pre>
${prose('The key goes into the header `X-Api-Key`, or into `Authorization: Bearer`.')}
${operations.map(({ path, method, described }) => operation(path, method, described)).join('\n')}
<section id="errors"><h2>Errors</h2>
${prose('Every error is one object: `{"errors":[{"title":"…","code":"…","detail":"…"}]}`. Errors are never charged.')}
${table(['Status', 'Code', 'Title', 'Detail'], errors)}
</section>
</body>
</html>
`;
}
