import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { root } from '../../bench/lib/paths.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { type Service, type ServiceOptions, startService } from '../fixtures/service.ts';
import { type TlsFront, tlsFront } from './support/tlsFront.ts';

/** Packages of npm and PyPI, unchanged, with the address that is compiled into them or that their manuals show. */

const execute = promisify(execFile);

interface Stage {
  readonly service: Service;
  readonly folder: string;
  readonly front: TlsFront;
}

/** `photo.jpg` in a folder of its own, larger than a preview. */
async function stage(t: ExecutionContext, options: ServiceOptions = {}): Promise<Stage> {
  const service = await startService(t, { freePreviews: 0, ...options });
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, 'photo.jpg'), await scene({ width: 900, height: 600 }));
  return { service, folder, front: await tlsFront(t, folder, service.url) };
}

/** That a file is a cut-out of the photo, not JSON or an error. */
async function isCutout(t: ExecutionContext, file: string, width = 900): Promise<void> {
  const { data, info } = await sharp(readFileSync(file)).raw().toBuffer({ resolveWithObject: true });
  t.is(info.width, width, file);
  t.is(info.channels, 4, file);
  t.is(data[3], 0, file);
  t.is(data[(Math.floor(info.height / 2) * info.width + Math.floor(info.width / 2)) * 4 + 3], 255, file);
}

const hosts = fileURLToPath(new URL('support/hosts.js', import.meta.url));

/** Runs a program as an ES module; npm's packages of this repository are there. */
async function node(text: string, { folder, front, service }: Stage): Promise<string> {
  writeFileSync(path.join(folder, 'program.mjs'), text);
  const packages = path.join(folder, 'node_modules');
  if (!existsSync(packages)) symlinkSync(path.join(root, 'node_modules'), packages);
  const { NODE_OPTIONS: _, ...surroundings } = process.env;
  const env = {
    ...surroundings,
    NODE_NO_WARNINGS: '1',
    NODE_EXTRA_CA_CERTS: front.certificate,
    CUTOUT_TEST_FRONT: String(front.port),
    KEY: service.key,
  };
  const args = ['--import', hosts, 'program.mjs'];
  const { stdout, stderr } = await execute(process.execPath, args, { cwd: folder, env, timeout: 60_000 });
  return stdout + stderr;
}

const endpoint = 'https://api.remove.bg/v1.0/removebg';

/** In the manner of the published Node.js sample, which nobody has touched for five years. */
const axiosProgram = (responseType: string) => `
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const axios = require('axios');
const FormData = require('form-data');
const fs = require('fs');

const form = new FormData();
form.append('size', 'auto');
form.append('image_file', fs.createReadStream('photo.jpg'), 'photo.jpg');
axios({
  method: 'post',
  url: '${endpoint}',
  data: form,
  responseType: '${responseType}',
  headers: { ...form.getHeaders(), 'X-Api-Key': process.env.KEY },
  encoding: null,
}).then((response) => {
  console.log(response.status, response.headers['content-type']);
  if (response.data.pipe) response.data.pipe(fs.createWriteStream('no-bg.png'));
  else fs.writeFileSync('no-bg.png', response.data);
}).catch((error) => console.log('failed', error.response?.status));
`;

for (const kind of ['arraybuffer', 'stream'])
  test(`axios with form-data and responseType ${kind}: the file that is written is the image`, async (t) => {
    const all = await stage(t);
    t.regex(await node(axiosProgram(kind), all), /^200 image\/png$/m);
    await isCutout(t, path.join(all.folder, 'no-bg.png'));
    t.is((await all.service.balance()).credits, 99);
  });

test('axios with a text of JSON and no type, and with an object', async (t) => {
  const all = await stage(t);
  const program = `
import axios from 'axios';
import { readFileSync, writeFileSync } from 'node:fs';
const body = { image_file_b64: readFileSync('photo.jpg').toString('base64'), size: 'full' };
const options = { headers: { 'X-Api-Key': process.env.KEY }, responseType: 'arraybuffer' };
writeFileSync('text.png', (await axios.post('${endpoint}', JSON.stringify(body), options)).data);
writeFileSync('object.png', (await axios.post('${endpoint}', body, options)).data);
const json = { ...options, headers: { ...options.headers, Accept: 'application/json' }, responseType: 'json' };
const { data } = await axios.post('${endpoint}', body, json);
writeFileSync('json.png', Buffer.from(data.data.result_b64, 'base64'));
`;
  await node(program, all);
  for (const name of ['text', 'object', 'json']) await isCutout(t, path.join(all.folder, `${name}.png`));
});

test('got with FormData', async (t) => {
  const all = await stage(t);
  const program = `
import got from 'got';
import { openAsBlob, writeFileSync } from 'node:fs';
const body = new FormData();
body.append('image_file', await openAsBlob('photo.jpg'));
body.append('size', 'full');
const answer = await got.post('${endpoint}', { body, headers: { 'X-Api-Key': process.env.KEY } });
console.log(answer.statusCode);
writeFileSync('no-bg.png', answer.rawBody);
`;
  t.is((await node(program, all)).trim(), '200');
  await isCutout(t, path.join(all.folder, 'no-bg.png'));
});

test('superagent: attach and field', async (t) => {
  const all = await stage(t);
  const program = `
import superagent from 'superagent';
import { writeFileSync } from 'node:fs';
const answer = await superagent.post('${endpoint}')
  .set('X-Api-Key', process.env.KEY)
  .field('size', 'full')
  .attach('image_file', 'photo.jpg');
console.log(answer.status, Buffer.isBuffer(answer.body));
writeFileSync('no-bg.png', answer.body);
`;
  t.is((await node(program, all)).trim(), '200 true');
  await isCutout(t, path.join(all.folder, 'no-bg.png'));
});

test('removebg-wrapper 1.0.3', async (t) => {
  const all = await stage(t);
  const program = `
import wrapper from 'removebg-wrapper';
await wrapper.rbFromImageFile('photo.jpg', process.env.KEY);
`;
  t.is(await node(program, all), '');
  await isCutout(t, path.join(all.folder, 'output.png'));
  t.regex(
    await node(program.replace('process.env.KEY', "'wrong'"), all),
    /403 \{"errors":\[\{"title":"API Key invalid"/,
  );
});

test("n8n's HTTP node: its Accept header, and data as a file", async (t) => {
  const { service } = await stage(t);
  const body = new FormData();
  body.append('image_file', new Blob([new Uint8Array(await scene())]), 'image.jpg');
  const answer = await service.post(body, {
    Accept:
      'application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8, */*;q=0.7',
  });
  t.is(answer.status, 200);
  t.is(answer.headers.get('content-type'), 'image/png');
});

/** Folder that `pip install --target` filled with a package. */
const installed = (name: string) => path.join(root, 'build', 'clients', name);

interface PythonClient {
  readonly name: string;
  readonly version: string;
  /** A package that it needs and does not ask for. */
  readonly needs?: string;
  /** Reads the key from KEY, writes `photo.jpg` as `no-bg.png`. */
  readonly program: string;
  readonly size: 'preview' | 'full';
}

const pythonClients: readonly PythonClient[] = [
  {
    name: 'removebg',
    version: '0.4',
    program: `
from removebg import RemoveBg
RemoveBg(os.environ["KEY"], "error.log").remove_background_from_img_file("photo.jpg", size="full")
os.rename("photo.jpg_no_bg.png", "no-bg.png")
`,
    size: 'full',
  },
  {
    name: 'remove-bg',
    version: '0.2.1',
    program: `
from removebg import RemoveBg
image = RemoveBg(os.environ["KEY"]).remove_background_from_file("photo.jpg", size="full")
with open("no-bg.png", "wb") as out:
    out.write(image)
`,
    size: 'full',
  },
  {
    name: 'remove-bg-api',
    version: '0.2.1',
    needs: 'requests',
    program: `
from remove_bg_api import RemoveBg
RemoveBg(os.environ["KEY"]).remove_bg_file("photo.jpg", out_path="no-bg.png", size="full", raw=False)
`,
    size: 'full',
  },
  {
    name: 'removebg-cli',
    version: '1.0.0',
    program: `
import sys
os.environ["REMOVE_BG_API_KEY"] = os.environ["KEY"]
import removebg_cli
removebg_cli.remove_bg(removebg_cli.get_api_key(), "photo.jpg", output="no-bg.png", size="preview")
`,
    size: 'preview',
  },
];

for (const { name, version, needs = '', program, size } of pythonClients)
  test(`PyPI ${name} ${version}, at the published address`, async (t) => {
    if (!existsSync(installed(name)))
      return sayLeftOut(
        t,
        `PyPI's ${name} is not installed (python3 -m pip install --target build/clients/${name} ${`${name}==${version} ${needs}`.trim()})`,
      );
    const { service, folder, front } = await stage(t);
    const preload = path.join(folder, 'preload');
    mkdirSync(preload);
    copyFileSync(
      path.join(root, 'test', 'clients', 'support', 'hosts.py'),
      path.join(preload, 'sitecustomize.py'),
    );
    writeFileSync(path.join(folder, 'program.py'), `import os\n${program}`);
    const run = (key: string) =>
      execute('python3', ['program.py'], {
        cwd: folder,
        env: {
          ...process.env,
          PYTHONPATH: `${preload}${path.delimiter}${installed(name)}`,
          REQUESTS_CA_BUNDLE: front.certificate,
          CUTOUT_TEST_FRONT: String(front.port),
          KEY: key,
        },
        timeout: 60_000,
      });
    await t.throwsAsync(run('wrong'));
    t.false(existsSync(path.join(folder, 'no-bg.png')));
    await run(service.key);
    await isCutout(t, path.join(folder, 'no-bg.png'), size === 'full' ? 900 : 612);
    t.is((await service.balance()).credits, size === 'full' ? 99 : 99.75);
  });
