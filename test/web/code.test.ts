import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { curl, languages, type Request } from '../../src/http/openapi/programs.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { missingFor, runProgram } from '../fixtures/programs.ts';
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

test('the curl line reads no file that a value happens to name', async (t) => {
  const { request, options } = await setting(t);
  const line = curl({ ...request, fields: [['bg_color', '@/etc/hostname']], out: '-' });
  const answer = await run('bash', ['-c', line.replace('--fail ', '-s ')], options);
  t.regex(answer.stdout, /received \\"@\/etc\/hostname\\"/);
});

for (const { id, write } of languages)
  test(`the program for ${id} runs unchanged`, async (t) => {
    const missing = await missingFor(id);
    if (missing !== undefined) return sayLeftOut(t, missing);
    const { service, request, result, folder } = await setting(t);
    await runProgram(id, write(request), folder, service.key);
    t.is(result().toString('latin1', 1, 4), 'PNG');
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
  for (const { id, write } of languages) {
    const program = write(request);
    t.regex(program, /image_url\W{1,6}https:\/\/a\.example\/b\.jpg\?c=1&d=2['"]/, id);
    t.regex(program, /bg_image_file.{1,30}beach\.jpg/, id);
  }
});
