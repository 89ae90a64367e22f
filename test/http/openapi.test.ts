import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import test from 'ava';
import sharp from 'sharp';
import { apiErrors } from '../../src/errors.ts';
import type { OpenApi } from '../../src/http/openapi/document.ts';
import { languages } from '../../src/http/openapi/programs.ts';
import { cutoutOptions } from '../../src/http/route/cutout/schema.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { Published } from '../fixtures/openapi.ts';
import { missingFor, runProgram } from '../fixtures/programs.ts';
import { form, type Service, startService } from '../fixtures/service.ts';

const documentOf = async ({ url }: Service) => (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;

test('the document is valid OpenAPI 3.1 and needs no key', async (t) => {
  const service = await startService(t);
  const result = await new Validator().validate({ ...(await documentOf(service)) });
  t.true(result.valid, JSON.stringify(result.errors));
});

test('every option is described in all three content types, every code in the errors', async (t) => {
  const service = await startService(t);
  const document = await documentOf(service);
  for (const name of ['/v1.0/cutout', '/v1.0/removebg']) {
    const content = document.paths[name]?.post?.requestBody?.content ?? {};
    t.deepEqual(Object.keys(content), [
      'multipart/form-data',
      'application/x-www-form-urlencoded',
      'application/json',
    ]);
    for (const [type, { schema }] of Object.entries(content)) {
      const described = Object.keys(schema.properties ?? {});
      const wanted = [
        ...Object.keys(cutoutOptions),
        'image_file_b64',
        'image_url',
        'bg_image_url',
        'mask_file_b64',
      ];
      if (type === 'multipart/form-data') wanted.push('image_file', 'bg_image_file', 'mask_file');
      t.deepEqual(described.sort(), wanted.sort());
      t.true(Object.values(schema.properties ?? {}).every(({ description }) => description));
    }
  }
  const text = JSON.stringify(document.paths['/v1.0/cutout']?.post?.responses);
  for (const { code, status } of apiErrors)
    t.is(text.includes(`\`${code}\``), ![404, 405, 499].includes(status), code);
  t.false(text.includes('operators_only'));
});

test("the document's defaults are the service's", async (t) => {
  const service = await startService(t);
  const document = await documentOf(service);
  const { properties = {} } =
    document.paths['/v1.0/cutout']?.post?.requestBody?.content['multipart/form-data']?.schema ?? {};
  const all = Object.entries(properties).flatMap(([name, { default: value }]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  t.true(all.length > 8);
  const image = await scene({ format: 'png' });
  const [plain, spelled] = await Promise.all([
    service.post(form({ image_file: image })),
    service.post(form({ image_file: image, ...Object.fromEntries(all) })),
  ]);
  t.is(spelled.status, 200);
  t.deepEqual(await spelled.arrayBuffer(), await plain.arrayBuffer());
});

test("the service accepts the document's examples and words", async (t) => {
  const service = await startService(t, { selection: true });
  const document = await documentOf(service);
  const { properties = {} } =
    document.paths['/v1.0/cutout']?.post?.requestBody?.content['multipart/form-data']?.schema ?? {};
  const image = await scene({ width: 1000, height: 800, subject: 'none' });
  for (const [name, { enum: words = [], examples = [] }] of Object.entries(properties)) {
    for (const value of [...words, ...examples]) {
      const answer = await service.post(form({ image_file: image, [name]: String(value) }));
      // It has no subject: everything before that check passed.
      t.regex(await answer.text(), /unknown_foreground/, `${name}=${value}`);
    }
  }
});

test('answers are as the document says', async (t) => {
  const service = await startService(t, { credits: 1, freePreviews: 1, rate: 20 });
  const published = new Published(await documentOf(service));
  const check = async (where: string, method: 'get' | 'post', answer: Response) =>
    t.deepEqual(
      published.faults(where, method, answer, Buffer.from(await answer.arrayBuffer()).toString()),
      [],
    );
  const image = await scene();
  const post = async (data: FormData, headers = {}) =>
    check('/v1.0/cutout', 'post', await service.post(data, headers));
  for (const format of ['auto', 'png', 'jpg', 'webp', 'avif', 'zip'])
    await post(form({ image_file: image, format }));
  await post(form({ image_file: image }), { Accept: 'application/json' });
  await post(form({ image_file: image, size: 'full' }));
  await post(form({ image_file: image, format: 'gif' }));
  await post(form({}), { 'X-Api-Key': 'wrong' });
  for (let i = 0; i < 20; i++) await post(form({ image_file: image }));
  await check('/v1.0/cutout', 'post', await service.post('x', { 'Content-Type': 'text/plain' }));
  service.engine.failure = new Error('bug');
  await post(form({ image_file: image }));
  const get = (name: string) => fetch(service.url + name, { headers: { 'X-Api-Key': service.key } });
  for (const name of ['/v1.0/account', '/health/live', '/health/ready'])
    await check(name, 'get', await get(name));
  await check('/v1.0/account', 'get', await fetch(`${service.url}/v1.0/account`));
  const improve = (data: FormData) =>
    fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: data,
    });
  await check('/v1.0/improve', 'post', await improve(form({ image_file: image, tag: 'a' })));
  await check('/v1.0/improve', 'post', await improve(form({})));
  service.health.stopping();
  await post(form({ image_file: image }));
  await check('/health/ready', 'get', await get('/health/ready'));
});

test('the reference page shows every option and code, and loads nothing', async (t) => {
  const service = await startService(t);
  const answer = await fetch(`${service.url}/docs`);
  t.is(answer.headers.get('content-type'), 'text/html; charset=utf-8');
  const page = await answer.text();
  const policy = answer.headers.get('content-security-policy') ?? '';
  const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? '';
  t.true(
    policy.startsWith(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; `,
    ),
  );
  t.notRegex(policy, /unsafe|https?:|\*/);
  t.notRegex(page, /style=|<script|<form|<link| on[a-z]+=/);
  for (const name of [...Object.keys(cutoutOptions), 'image_file', 'bg_image_file', 'X-Foreground-Top'])
    t.true(page.includes(`<code>${name}</code>`), name);
  for (const { code, status } of apiErrors)
    if (status !== 499) t.true(page.includes(`<code>${code}</code>`), code);
  t.false(/<script|src=|@import|https?:\/\/(?!127\.0\.0\.1)/.test(page));
});

const textOf = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

for (const { id } of languages) {
  test(`the page's sample for ${id} works unchanged`, async (t) => {
    const missing = await missingFor(id);
    if (missing !== undefined) return sayLeftOut(t, missing);
    const service = await startService(t);
    const page = await (await fetch(`${service.url}/docs`)).text();
    const sample = textOf(new RegExp(`<pre id="sample-${id}"[^>]*>([\\s\\S]*?)</pre>`).exec(page)?.[1] ?? '');
    t.true(sample.includes(`${service.url}/v1.0/cutout`));
    const folder = temporaryFolder(t);
    writeFileSync(path.join(folder, 'photo.jpg'), await scene());
    await t.throwsAsync(runProgram(id, sample, folder, 'wrong'));
    t.false(existsSync(path.join(folder, 'cutout.png')));
    await runProgram(id, sample, folder, service.key);
    t.is((await sharp(readFileSync(path.join(folder, 'cutout.png'))).metadata()).format, 'png');
  });
}
