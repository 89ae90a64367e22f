/** The page's request as programs to copy. They read the key from CUTOUT_KEY and never contain it. */

export type Image =
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'url'; readonly url: string };

export interface Request {
  /** Origin of the service, without a slash at the end. */
  readonly address: string;
  readonly path: string;
  readonly image: Image;
  /** Text fields in the order they are sent. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** File fields besides the image, with the names of their files. */
  readonly files: readonly (readonly [name: string, file: string])[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Name of the file that the result is written to. */
  readonly out: string;
}

const shell = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const quoted = (text: string) => JSON.stringify(text);
const single = (text: string) =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;

/** Every file of the form, the image first. */
const filesOf = ({ image, files }: Request) => [
  ...(image.kind === 'file' ? [['image_file', image.name] as const] : []),
  ...files,
];

const textsOf = ({ image, fields }: Request) => [
  ...(image.kind === 'url' ? [['image_url', image.url] as const] : []),
  ...fields,
];

export function curl(request: Request): string {
  return [
    'curl -H "X-Api-Key: $CUTOUT_KEY"',
    ...request.headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    // curl interprets ; and " in a file name, so the name is quoted separately.
    ...filesOf(request).map(([name, file]) =>
      /[;,"\\]/.test(file)
        ? `-F ${shell(`${name}=@"${file.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`)}`
        : `-F ${shell(`${name}=@${file}`)}`,
    ),
    // curl would read a value that begins with @ or < from a file.
    ...textsOf(request).map(
      ([name, value]) => `${/^[@<]/.test(value) ? '--form-string' : '-F'} ${shell(`${name}=${value}`)}`,
    ),
    `--fail -o ${shell(request.out)}`,
    shell(request.address + request.path),
  ].join(' \\\n  ');
}

export function javascript(request: Request): string {
  const { address, path, headers, out } = request;
  const files = filesOf(request);
  return [
    ...(files.length > 0 ? ["import { openAsBlob } from 'node:fs';"] : []),
    "import { writeFile } from 'node:fs/promises';",
    '',
    'const body = new FormData();',
    ...files.map(
      ([name, file]) => `body.append(${single(name)}, await openAsBlob(${single(file)}), ${single(file)});`,
    ),
    ...textsOf(request).map(([name, value]) => `body.append(${single(name)}, ${single(value)});`),
    `const answer = await fetch(${single(address + path)}, {`,
    "  method: 'POST',",
    '  headers: {',
    "    'X-Api-Key': process.env.CUTOUT_KEY,",
    ...headers.map(([name, value]) => `    ${single(name)}: ${single(value)},`),
    '  },',
    '  body,',
    '});',
    'if (!answer.ok) throw new Error((await answer.json()).errors[0].title);',
    `await writeFile(${single(out)}, Buffer.from(await answer.arrayBuffer()));`,
  ].join('\n');
}

export function python(request: Request): string {
  const { address, path, headers, out } = request;
  const files = filesOf(request);
  const texts = textsOf(request);
  return [
    'import os',
    'import requests',
    '',
    'answer = requests.post(',
    `    ${quoted(address + path)},`,
    '    headers={',
    '        "X-Api-Key": os.environ["CUTOUT_KEY"],',
    ...headers.map(([name, value]) => `        ${quoted(name)}: ${quoted(value)},`),
    '    },',
    ...(files.length > 0
      ? [
          '    files={',
          ...files.map(([name, file]) => `        ${quoted(name)}: open(${quoted(file)}, "rb"),`),
          '    },',
        ]
      : []),
    ...(texts.length > 0
      ? [
          '    data={',
          ...texts.map(([name, value]) => `        ${quoted(name)}: ${quoted(value)},`),
          '    },',
        ]
      : []),
    ')',
    'if not answer.ok:',
    '    raise SystemExit(answer.json()["errors"][0]["title"])',
    `with open(${quoted(out)}, "wb") as out:`,
    '    out.write(answer.content)',
  ].join('\n');
}

export const languages = [
  { id: 'curl', name: 'curl', write: curl },
  { id: 'javascript', name: 'fetch', write: javascript },
  { id: 'python', name: 'Python', write: python },
] as const;
