/** A request as programs to copy, in the playground and the reference. They read the key from CUTOUT_KEY and never contain it. */

export type Image =
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'url'; readonly url: string };

type Pairs = readonly (readonly [name: string, value: string])[];

export interface Request {
  /** Origin of the service, without a slash at the end. */
  readonly address: string;
  readonly path: string;
  readonly image: Image;
  /** Text fields in the order they are sent. */
  readonly fields: Pairs;
  /** File fields besides the image, with the names of their files. */
  readonly files: Pairs;
  readonly headers: Pairs;
  /** Name of the file that the result is written to. */
  readonly out: string;
}

const shell = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const double = (text: string) => JSON.stringify(text);
/** A text of PHP or Ruby, whose single quotes have two escapes. */
const single = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const singleLine = (text: string) => single(text).replaceAll('\n', '\\n');

/** Every file of the form, the image first. */
const filesOf = ({ image, files }: Request): Pairs => [
  ...(image.kind === 'file' ? [['image_file', image.name] as const] : []),
  ...files,
];

const textsOf = ({ image, fields }: Request): Pairs => [
  ...(image.kind === 'url' ? [['image_url', image.url] as const] : []),
  ...fields,
];

/** What a program is made of, in the quotes of its language. */
interface Quoted {
  readonly url: string;
  readonly files: Pairs;
  readonly texts: Pairs;
  readonly headers: Pairs;
  readonly out: string;
}

const program =
  (quote: (text: string) => string, lines: (quoted: Quoted, request: Request) => readonly string[]) =>
  (request: Request): string => {
    const pairs = (of: Pairs): Pairs => of.map(([name, value]) => [quote(name), quote(value)]);
    const quoted = {
      url: quote(request.address + request.path),
      files: pairs(filesOf(request)),
      texts: pairs(textsOf(request)),
      headers: pairs(request.headers),
      out: quote(request.out),
    };
    return lines(quoted, request).join('\n');
  };

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

const javascript = program(singleLine, ({ url, files, texts, headers, out }) => [
  ...(files.length > 0 ? ["import { openAsBlob } from 'node:fs';"] : []),
  "import { writeFile } from 'node:fs/promises';",
  '',
  'const body = new FormData();',
  ...files.map(([name, file]) => `body.append(${name}, await openAsBlob(${file}), ${file});`),
  ...texts.map(([name, value]) => `body.append(${name}, ${value});`),
  `const answer = await fetch(${url}, {`,
  "  method: 'POST',",
  '  headers: {',
  "    'X-Api-Key': process.env.CUTOUT_KEY,",
  ...headers.map(([name, value]) => `    ${name}: ${value},`),
  '  },',
  '  body,',
  '});',
  'if (!answer.ok) throw new Error((await answer.json()).errors[0].title);',
  `await writeFile(${out}, Buffer.from(await answer.arrayBuffer()));`,
]);

/** An argument of a call in Python; nothing without entries. */
const argument = (name: string, entries: readonly string[]): readonly string[] =>
  entries.length > 0 ? [`    ${name}={`, ...entries.map((entry) => `        ${entry},`), '    },'] : [];

const python = program(double, ({ url, files, texts, headers, out }) => [
  'import os',
  'import requests',
  '',
  'answer = requests.post(',
  `    ${url},`,
  ...argument('headers', [
    '"X-Api-Key": os.environ["CUTOUT_KEY"]',
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]),
  ...argument(
    'files',
    files.map(([name, file]) => `${name}: open(${file}, "rb")`),
  ),
  ...argument(
    'data',
    texts.map(([name, value]) => `${name}: ${value}`),
  ),
  ')',
  'if not answer.ok:',
  '    raise SystemExit(answer.json()["errors"][0]["title"])',
  `with open(${out}, "wb") as out:`,
  '    out.write(answer.content)',
]);

const axios = program(singleLine, ({ url, files, texts, headers, out }) => [
  "import { createReadStream, writeFileSync } from 'node:fs';",
  "import axios from 'axios';",
  "import FormData from 'form-data';",
  '',
  'const body = new FormData();',
  ...files.map(([name, file]) => `body.append(${name}, createReadStream(${file}));`),
  ...texts.map(([name, value]) => `body.append(${name}, ${value});`),
  `const answer = await axios.post(${url}, body, {`,
  '  headers: {',
  '    ...body.getHeaders(),',
  "    'X-Api-Key': process.env.CUTOUT_KEY,",
  ...headers.map(([name, value]) => `    ${name}: ${value},`),
  '  },',
  "  responseType: 'arraybuffer',",
  '  validateStatus: () => true,',
  '});',
  'if (answer.status !== 200) throw new Error(JSON.parse(answer.data).errors[0].title);',
  `writeFileSync(${out}, answer.data);`,
]);

const php = program(single, ({ url, files, texts, out }, { headers }) => [
  '<?php',
  `$request = curl_init(${url});`,
  'curl_setopt_array($request, [',
  '    CURLOPT_RETURNTRANSFER => true,',
  '    CURLOPT_HTTPHEADER => [',
  "        'X-Api-Key: ' . getenv('CUTOUT_KEY'),",
  ...headers.map(([name, value]) => `        ${single(`${name}: ${value}`)},`),
  '    ],',
  '    CURLOPT_POSTFIELDS => [',
  ...files.map(([name, file]) => `        ${name} => new CURLFile(${file}),`),
  ...texts.map(([name, value]) => `        ${name} => ${value},`),
  '    ],',
  ']);',
  '$answer = curl_exec($request);',
  'if ($answer === false) throw new Exception(curl_error($request));',
  'if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) !== 200)',
  '    throw new Exception(json_decode($answer)->errors[0]->title);',
  `file_put_contents(${out}, $answer);`,
]);

const ruby = program(single, ({ url, files, texts, headers, out }) => [
  "require 'json'",
  "require 'net/http'",
  '',
  `uri = URI(${url})`,
  'request = Net::HTTP::Post.new(uri)',
  "request['X-Api-Key'] = ENV.fetch('CUTOUT_KEY')",
  ...headers.map(([name, value]) => `request[${name}] = ${value}`),
  'request.set_form([',
  ...files.map(([name, file]) => `  [${name}, File.open(${file}, 'rb')],`),
  ...texts.map(([name, value]) => `  [${name}, ${value}],`),
  "], 'multipart/form-data')",
  "answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }",
  "abort JSON.parse(answer.body)['errors'][0]['title'] if answer.code != '200'",
  `File.binwrite(${out}, answer.body)`,
]);

const go = program(double, ({ url, files, texts, headers, out }) => [
  'package main',
  '',
  'import (',
  ...['bytes', 'io', 'log', 'mime/multipart', 'net/http', 'os'].map((name) => `\t${double(name)}`),
  ')',
  '',
  'func check(err error) {',
  '\tif err != nil {',
  '\t\tlog.Fatal(err)',
  '\t}',
  '}',
  '',
  'func main() {',
  '\tvar body bytes.Buffer',
  '\tform := multipart.NewWriter(&body)',
  `\tfor _, file := range [][2]string{${files.map((pair) => `{${pair.join(', ')}}`).join(', ')}} {`,
  '\t\tdata, err := os.ReadFile(file[1])',
  '\t\tcheck(err)',
  '\t\tpart, err := form.CreateFormFile(file[0], file[1])',
  '\t\tcheck(err)',
  '\t\tpart.Write(data)',
  '\t}',
  ...texts.map(([name, value]) => `\tcheck(form.WriteField(${name}, ${value}))`),
  '\tcheck(form.Close())',
  `\trequest, err := http.NewRequest("POST", ${url}, &body)`,
  '\tcheck(err)',
  '\trequest.Header.Set("Content-Type", form.FormDataContentType())',
  '\trequest.Header.Set("X-Api-Key", os.Getenv("CUTOUT_KEY"))',
  ...headers.map(([name, value]) => `\trequest.Header.Set(${name}, ${value})`),
  '\tanswer, err := http.DefaultClient.Do(request)',
  '\tcheck(err)',
  '\tresult, err := io.ReadAll(answer.Body)',
  '\tcheck(err)',
  '\tif answer.StatusCode != 200 {',
  '\t\tlog.Fatal(string(result))',
  '\t}',
  `\tcheck(os.WriteFile(${out}, result, 0o644))`,
  '}',
]);

export const languages = [
  { id: 'curl', name: 'curl', write: curl },
  { id: 'javascript', name: 'fetch', write: javascript },
  { id: 'axios', name: 'axios', write: axios },
  { id: 'python', name: 'Python', write: python },
  { id: 'php', name: 'PHP', write: php },
  { id: 'go', name: 'Go', write: go },
  { id: 'ruby', name: 'Ruby', write: ruby },
] as const;
