/** A request as programs to copy, in the playground and the reference. They read the key from CUTOUT_KEY and never contain it. */

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

function javascript(request: Request): string {
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

function python(request: Request): string {
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

function axios(request: Request): string {
  const { address, path, headers, out } = request;
  return [
    "import { createReadStream, writeFileSync } from 'node:fs';",
    "import axios from 'axios';",
    "import FormData from 'form-data';",
    '',
    'const body = new FormData();',
    ...filesOf(request).map(
      ([name, file]) => `body.append(${single(name)}, createReadStream(${single(file)}));`,
    ),
    ...textsOf(request).map(([name, value]) => `body.append(${single(name)}, ${single(value)});`),
    `const answer = await axios.post(${single(address + path)}, body, {`,
    '  headers: {',
    '    ...body.getHeaders(),',
    "    'X-Api-Key': process.env.CUTOUT_KEY,",
    ...headers.map(([name, value]) => `    ${single(name)}: ${single(value)},`),
    '  },',
    "  responseType: 'arraybuffer',",
    '  validateStatus: () => true,',
    '});',
    'if (answer.status !== 200) throw new Error(JSON.parse(answer.data).errors[0].title);',
    `writeFileSync(${single(out)}, answer.data);`,
  ].join('\n');
}

/** Quotes a text for PHP and Ruby, where single quotes have two escapes. */
const twoEscapes = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function php(request: Request): string {
  const { address, path, headers, out } = request;
  return [
    '<?php',
    `$request = curl_init(${twoEscapes(address + path)});`,
    'curl_setopt_array($request, [',
    '    CURLOPT_RETURNTRANSFER => true,',
    '    CURLOPT_HTTPHEADER => [',
    "        'X-Api-Key: ' . getenv('CUTOUT_KEY'),",
    ...headers.map(([name, value]) => `        ${twoEscapes(`${name}: ${value}`)},`),
    '    ],',
    '    CURLOPT_POSTFIELDS => [',
    ...filesOf(request).map(
      ([name, file]) => `        ${twoEscapes(name)} => new CURLFile(${twoEscapes(file)}),`,
    ),
    ...textsOf(request).map(([name, value]) => `        ${twoEscapes(name)} => ${twoEscapes(value)},`),
    '    ],',
    ']);',
    '$answer = curl_exec($request);',
    'if ($answer === false) throw new Exception(curl_error($request));',
    'if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) !== 200)',
    '    throw new Exception(json_decode($answer)->errors[0]->title);',
    `file_put_contents(${twoEscapes(out)}, $answer);`,
  ].join('\n');
}

function ruby(request: Request): string {
  const { address, path, headers, out } = request;
  return [
    "require 'json'",
    "require 'net/http'",
    '',
    `uri = URI(${twoEscapes(address + path)})`,
    'request = Net::HTTP::Post.new(uri)',
    "request['X-Api-Key'] = ENV.fetch('CUTOUT_KEY')",
    ...headers.map(([name, value]) => `request[${twoEscapes(name)}] = ${twoEscapes(value)}`),
    'request.set_form([',
    ...filesOf(request).map(
      ([name, file]) => `  [${twoEscapes(name)}, File.open(${twoEscapes(file)}, 'rb')],`,
    ),
    ...textsOf(request).map(([name, value]) => `  [${twoEscapes(name)}, ${twoEscapes(value)}],`),
    "], 'multipart/form-data')",
    "answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }",
    "abort JSON.parse(answer.body)['errors'][0]['title'] if answer.code != '200'",
    `File.binwrite(${twoEscapes(out)}, answer.body)`,
  ].join('\n');
}

function go(request: Request): string {
  const { address, path, headers, out } = request;
  const files = filesOf(request);
  const imports = ['bytes', 'io', 'log', 'mime/multipart', 'net/http', 'os'];
  return [
    'package main',
    '',
    'import (',
    ...imports.map((name) => `\t${quoted(name)}`),
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
    `\tfor _, file := range [][2]string{${files.map(([name, file]) => `{${quoted(name)}, ${quoted(file)}}`).join(', ')}} {`,
    '\t\tdata, err := os.ReadFile(file[1])',
    '\t\tcheck(err)',
    '\t\tpart, err := form.CreateFormFile(file[0], file[1])',
    '\t\tcheck(err)',
    '\t\tpart.Write(data)',
    '\t}',
    ...textsOf(request).map(([name, value]) => `\tcheck(form.WriteField(${quoted(name)}, ${quoted(value)}))`),
    '\tcheck(form.Close())',
    `\trequest, err := http.NewRequest("POST", ${quoted(address + path)}, &body)`,
    '\tcheck(err)',
    '\trequest.Header.Set("Content-Type", form.FormDataContentType())',
    '\trequest.Header.Set("X-Api-Key", os.Getenv("CUTOUT_KEY"))',
    ...headers.map(([name, value]) => `\trequest.Header.Set(${quoted(name)}, ${quoted(value)})`),
    '\tanswer, err := http.DefaultClient.Do(request)',
    '\tcheck(err)',
    '\tresult, err := io.ReadAll(answer.Body)',
    '\tcheck(err)',
    '\tif answer.StatusCode != 200 {',
    '\t\tlog.Fatal(string(result))',
    '\t}',
    `\tcheck(os.WriteFile(${quoted(out)}, result, 0o644))`,
    '}',
  ].join('\n');
}

export const languages = [
  { id: 'curl', name: 'curl', write: curl },
  { id: 'javascript', name: 'fetch', write: javascript },
  { id: 'axios', name: 'axios', write: axios },
  { id: 'python', name: 'Python', write: python },
  { id: 'php', name: 'PHP', write: php },
  { id: 'go', name: 'Go', write: go },
  { id: 'ruby', name: 'Ruby', write: ruby },
] as const;
