import { execFile } from 'node:child_process';
import { existsSync, openAsBlob, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { type Service, type ServiceOptions, startService } from '../fixtures/service.ts';
import { publishedHost, type TlsFront, tlsFront } from './support/tlsFront.ts';

/** Calls from the published documentation, made by the programs it shows. */

const execute = promisify(execFile);
const published = `https://${publishedHost}/v1.0`;

interface Stage {
  readonly service: Service;
  readonly folder: string;
  readonly front: TlsFront;
  readonly photo: string;
  readonly out: string;
}

/** `photo.jpg` in a folder of its own; `grain` makes it exceed a megabyte, so that curl waits for 100 Continue. */
async function stage(t: ExecutionContext, options: ServiceOptions = {}, grain = false): Promise<Stage> {
  const service = await startService(t, { freePreviews: 0, ...options });
  const folder = temporaryFolder(t);
  const photo = path.join(folder, 'photo.jpg');
  writeFileSync(photo, grain ? await grainy() : await scene({ width: 600, height: 450 }));
  const front = await tlsFront(t, folder, service.url);
  return { service, folder, front, photo, out: path.join(folder, 'no-bg.png') };
}

const grainy = () =>
  sharp({
    create: {
      width: 900,
      height: 700,
      channels: 3,
      background: '#884422',
      noise: { type: 'gaussian', mean: 100, sigma: 60 },
    },
  })
    .extend({ top: 40, bottom: 40, left: 40, right: 40, background: '#fff' })
    .png({ compressionLevel: 0 })
    .toBuffer();

async function checkCutout(t: ExecutionContext, file: string): Promise<void> {
  const { data, info } = await sharp(readFileSync(file)).raw().toBuffer({ resolveWithObject: true });
  t.is(info.format as string, 'raw');
  t.is(info.channels, 4);
  t.deepEqual([...data.subarray(0, 4)], [0, 0, 0, 0]);
  t.is(data[(Math.floor(info.height / 2) * info.width + Math.floor(info.width / 2)) * 4 + 3], 255);
}

interface Curl {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function curl(args: readonly string[]): Promise<Curl> {
  try {
    const { stdout, stderr } = await execute('curl', ['--silent', '--show-error', ...args], {
      timeout: 30_000,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code: number; stdout?: string; stderr?: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}

/** The effect of a line in /etc/hosts and an accepted certificate. */
const asPublished = ({ port, certificate }: TlsFront) => [
  ...['--connect-to', `${publishedHost}:443:127.0.0.1:${port}`],
  ...['--cacert', certificate],
];

test('curl: file upload, at the published address', async (t) => {
  const { service, front, photo, out } = await stage(t);
  const { code, stderr } = await curl([
    ...asPublished(front),
    ...['-H', `X-Api-Key: ${service.key}`],
    ...['-F', `image_file=@${photo}`, '-F', 'size=auto', '-f', `${published}/removebg`, '-o', out],
  ]);
  t.is(code, 0, stderr);
  await checkCutout(t, out);
  t.is((await service.balance()).credits, 99);
});

test('curl: file upload with only the base address changed', async (t) => {
  const { service, photo, out } = await stage(t);
  const { code, stderr } = await curl([
    ...['-H', `X-Api-Key: ${service.key}`],
    ...['-F', `image_file=@${photo}`, '-F', 'size=auto', '-f', `${service.url}/v1.0/removebg`, '-o', out],
  ]);
  t.is(code, 0, stderr);
  await checkCutout(t, out);
});

test('curl: a large upload waits for 100 Continue and gets it', async (t) => {
  const { service, photo, out } = await stage(t, {}, true);
  t.true(readFileSync(photo).length > 1024 * 1024);
  const { code, stderr } = await curl([
    ...['--verbose', '-H', `X-Api-Key: ${service.key}`],
    ...['-F', `image_file=@${photo}`, '-F', 'size=auto', '-f', `${service.url}/v1.0/removebg`, '-o', out],
  ]);
  t.is(code, 0, stderr);
  t.regex(stderr, /> Expect: 100-continue/);
  t.regex(stderr, /< HTTP\/1.1 100 Continue/);
  await checkCutout(t, out);
});

test('curl: a wrong key is refused before a large upload is sent', async (t) => {
  const { service, photo, out } = await stage(t, {}, true);
  const { code, stderr } = await curl([
    ...['--verbose', '-H', 'X-Api-Key: wrong'],
    ...['-F', `image_file=@${photo}`, '-f', `${service.url}/v1.0/removebg`, '-o', out],
  ]);
  t.is(code, 22);
  t.regex(stderr, /error: 403/);
  t.notRegex(stderr, /100 Continue/);
  t.false(existsSync(out));
});

test('curl: an error without -f is the JSON of the contract', async (t) => {
  const { service, folder } = await stage(t);
  const text = path.join(folder, 'text.jpg');
  writeFileSync(text, 'text');
  const { code, stdout } = await curl([
    ...['-H', `X-Api-Key: ${service.key}`, '-F', `image_file=@${text}`, '-F', 'size=auto'],
    `${service.url}/v1.0/removebg`,
  ]);
  t.is(code, 0);
  t.is(JSON.parse(stdout).errors[0].code, 'invalid_file_type');
});

test('curl: account balance and image submission', async (t) => {
  const { service, front, photo } = await stage(t);
  const key = ['-H', `X-Api-Key: ${service.key}`];
  const account = await curl([...asPublished(front), ...key, '-H', 'accept: */*', `${published}/account`]);
  t.is(JSON.parse(account.stdout).data.attributes.credits.total, 100);
  const improve = await curl([
    ...[...asPublished(front), ...key, '-F', `image_file=@${photo}`, '-F', 'tag=hair'],
    `${published}/improve`,
  ]);
  t.regex(JSON.parse(improve.stdout).id, /^[0-9a-f-]{36}$/);
});

test('fetch: FormData with a blob, which is sent under the name "blob"', async (t) => {
  const { service, photo, out } = await stage(t);
  const body = new FormData();
  body.append('size', 'auto');
  body.append('image_file', await openAsBlob(photo));
  const answer = await fetch(`${service.url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body,
  });
  t.true(answer.ok);
  t.is(answer.status, 200);
  writeFileSync(out, Buffer.from(await answer.arrayBuffer()));
  await checkCutout(t, out);
});

const pythonSample = `
import sys, requests
address, key, photo, out = sys.argv[1:]
answer = requests.post(
    address + '/v1.0/removebg',
    files={'image_file': open(photo, 'rb')},
    data={'size': 'auto'},
    headers={'X-Api-Key': key},
)
if answer.status_code == requests.codes.ok:
    open(out, 'wb').write(answer.content)
else:
    print(answer.status_code, answer.json()['errors'][0]['title'])
`;

test('Python: requests with a file part without a type', async (t) => {
  try {
    await execute('python3', ['-c', 'import requests']);
  } catch {
    sayLeftOut(t, 'python3 with the package requests is not installed');
    return;
  }
  const { service, photo, out } = await stage(t);
  const run = (key: string) => execute('python3', ['-c', pythonSample, service.url, key, photo, out]);
  t.is((await run('wrong')).stdout.trim(), '403 API Key invalid');
  t.false(existsSync(out));
  await run(service.key);
  await checkCutout(t, out);
});
