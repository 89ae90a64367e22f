import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { curl, javascript, python, type Request } from '../../web/src/lib/code.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';

const run = promisify(execFile);

/** Names and values that need correct quoting. */
const hostile = `it's "a; b$(c)`;

async function setting(t: ExecutionContext) {
  const service = await startService(t);
  const folder = temporaryFolder(t);
  writeFileSync(path.join(folder, `${hostile}.jpg`), await scene({ width: 300, height: 200 }));
  const request: Request = {
    address: service.url,
    path: '/v1.0/cutout',
    image: { kind: 'file', name: `${hostile}.jpg` },
    fields: [
      ['size', 'preview'],
      ['type_level', '2'],
      ['shadow_type[person]', 'none'],
    ],
    files: [],
    headers: [['Idempotency-Key', hostile]],
    out: 'result file.png',
  };
  const options = { cwd: folder, env: { ...process.env, CUTOUT_KEY: service.key } };
  const result = () => readFileSync(path.join(folder, request.out));
  return { service, request, options, result, folder };
}

test('the curl line runs unchanged', async (t) => {
  const { request, options, result } = await setting(t);
  await run('bash', ['-c', curl(request)], options);
  t.is(result().toString('latin1', 1, 4), 'PNG');
});

test('the curl line reads no file that a value happens to name', async (t) => {
  const { request, options } = await setting(t);
  const line = curl({ ...request, fields: [['bg_color', '@/etc/hostname']], out: '-' });
  const answer = await run('bash', ['-c', line.replace('--fail ', '-s ')], options);
  t.regex(answer.stdout, /received \\"@\/etc\/hostname\\"/);
});

test('the Node.js program runs unchanged', async (t) => {
  const { request, options, result, folder } = await setting(t);
  writeFileSync(path.join(folder, 'program.mjs'), javascript(request));
  await run(process.execPath, ['program.mjs'], options);
  t.is(result().toString('latin1', 1, 4), 'PNG');
});

test('the Python program is valid', async (t) => {
  const { request, options, folder } = await setting(t);
  writeFileSync(path.join(folder, 'program.py'), python(request));
  await t.notThrowsAsync(run('python3', ['-m', 'py_compile', 'program.py'], options));
});

test("an image's address and a background are part of the programs", (t) => {
  const request: Request = {
    address: 'https://cutout.example.test',
    path: '/v1.0/cutout',
    image: { kind: 'url', url: 'https://a.example/b.jpg?c=1&d=2' },
    fields: [],
    files: [['bg_image_file', 'beach.jpg']],
    headers: [],
    out: 'cutout.png',
  };
  t.true(curl(request).includes("-F 'image_url=https://a.example/b.jpg?c=1&d=2'"));
  t.true(curl(request).includes('-F bg_image_file=@beach.jpg'));
  t.true(javascript(request).includes("body.append('image_url', 'https://a.example/b.jpg?c=1&d=2');"));
  t.true(python(request).includes('"bg_image_file": open("beach.jpg", "rb"),'));
});
