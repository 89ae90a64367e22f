import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { temporaryFolder } from '../fixtures/cli.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { imageHost } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { type Service, type ServiceOptions, startService } from '../fixtures/service.ts';
import type { Call, Outcome } from './support/removeBg.ts';
import { type TlsFront, tlsFront } from './support/tlsFront.ts';

const support = (name: string) => fileURLToPath(new URL(`support/${name}.js`, import.meta.url));

/** Runs npm's remove.bg 1.3.0, unchanged; its compiled-in address leads to the front. */
function run(front: TlsFront, calls: readonly Call[]): Promise<Outcome[]> {
  const { NODE_OPTIONS: _, ...surroundings } = process.env;
  const env = {
    ...surroundings,
    NODE_NO_WARNINGS: '1',
    NODE_EXTRA_CA_CERTS: front.certificate,
    CUTOUT_TEST_FRONT: String(front.port),
  };
  return new Promise((resolve, reject) => {
    const args = ['--import', support('hosts'), support('removeBg')];
    const options = { env, timeout: 60_000, maxBuffer: 64e6 };
    const child = execFile(process.execPath, args, options, (error, stdout) =>
      error ? reject(error) : resolve(JSON.parse(stdout)),
    );
    child.stdin?.end(JSON.stringify(calls));
  });
}

interface Stage {
  readonly service: Service;
  readonly folder: string;
  readonly front: TlsFront;
}

async function stage(t: ExecutionContext, options?: ServiceOptions): Promise<Stage> {
  const service = await startService(t, options);
  const folder = temporaryFolder(t);
  return { service, folder, front: await tlsFront(t, folder, service.url) };
}

function resultOf(t: ExecutionContext, outcome: Outcome | undefined): Readonly<Record<string, unknown>> {
  if (outcome && 'result' in outcome) return outcome.result;
  return t.fail(JSON.stringify(outcome));
}

async function corners(bytes: Buffer): Promise<{ format: string; corner: number[]; middle: number[] }> {
  const { format } = await sharp(bytes).metadata();
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number) => [
    ...data.subarray((y * info.width + x) * 4, (y * info.width + x) * 4 + 4),
  ];
  return { format, corner: at(0, 0), middle: at(info.width >> 1, info.height >> 1) };
}

test('files, base64 and addresses give the same image, written to the output file', async (t) => {
  const { service, folder, front } = await stage(t, { freePreviews: 0 });
  const { key: apiKey } = service;
  const image = await scene({ width: 400, height: 300 });
  const photo = path.join(folder, 'photo.jpg');
  writeFileSync(photo, image);
  const url = `${await imageHost(t, (_req, res) => res.end(image))}/photo.jpg`;

  const outputFile = path.join(folder, 'out.png');
  const calls: Call[] = [
    { verb: 'file', apiKey, path: photo, outputFile, size: 'regular', type: 'auto' },
    { verb: 'base64', apiKey, base64img: image.toString('base64'), size: 'preview' },
    { verb: 'url', apiKey, url, size: 'full', type: 'person' },
  ];
  const results = (await run(front, calls)).map((outcome) => resultOf(t, outcome));

  const [first] = results;
  t.like(first, {
    creditsCharged: '0.25',
    detectedType: 'other',
    resultWidth: '400',
    resultHeight: '300',
    rateLimit: '500',
    rateLimitRemaining: '499',
  });
  t.regex(String(first?.['rateLimitReset']), /^\d{10}$/);
  t.like(results[2], { creditsCharged: '1', detectedType: 'person', rateLimitRemaining: '497' });
  const images = results.map(({ base64img }) => Buffer.from(String(base64img), 'base64'));
  t.deepEqual(readFileSync(outputFile), images[0]);
  for (const bytes of images) {
    const { format, corner, middle } = await corners(bytes);
    t.is(format, 'png');
    t.deepEqual(corner, [0, 0, 0, 0]);
    t.is(middle[3], 255);
  }
});

test('crop, margin, scale, position, roi, background, channels and shadow arrive', async (t) => {
  const engine = createEngine(loadAddon(), engineOptions());
  t.teardown(() => engine.close(0));
  const { service, folder, front } = await stage(t, { engine });
  const { key: apiKey } = service;
  const photo = path.join(folder, 'photo.jpg');
  writeFileSync(photo, await scene({ width: 400, height: 300, format: 'jpeg' }));
  const file = { verb: 'file', apiKey, path: photo, size: 'full' } as const;
  const calls: Call[] = [
    { ...file, crop: true, crop_margin: '10px' },
    { ...file, scale: '100%', position: 'center' },
    { ...file, roi: '0% 0% 50% 100%' },
    { ...file, bg_color: '81d4fa' },
    { ...file, channels: 'alpha' },
    { ...file, add_shadow: true },
  ];
  const [cropped, scaled, regional, coloured, matte, shaded] = (await run(front, calls)).map((outcome) =>
    resultOf(t, outcome),
  );
  const bytes = (result: typeof cropped) => Buffer.from(String(result?.['base64img']), 'base64');
  // The subject is 200 by 150 pixels.
  t.like(cropped, { resultWidth: '220', resultHeight: '170' });
  t.like(scaled, { resultWidth: '400', resultHeight: '300' });
  t.is((await corners(bytes(scaled))).corner[3], 255, 'the subject fills the canvas');
  t.like(regional, { resultWidth: '400', resultHeight: '300' });
  const background = await corners(bytes(coloured));
  t.is(background.format, 'jpeg');
  t.true(background.corner.every((value, i) => Math.abs(value - ([0x81, 0xd4, 0xfa, 255][i] ?? 0)) < 4));
  t.like(await sharp(bytes(matte)).metadata(), { format: 'png', channels: 1 });
  t.notDeepEqual(bytes(shaded), bytes(regional));
});

test('errors arrive as the list that callers expect', async (t) => {
  // Enough for a preview: without the means to pay nothing is fetched.
  const { service, folder, front } = await stage(t, { credits: 0.25, freePreviews: 0 });
  const { key: apiKey } = service;
  const photo = path.join(folder, 'photo.jpg');
  writeFileSync(photo, await scene());
  const text = path.join(folder, 'text.jpg');
  writeFileSync(text, 'not an image');
  const outputFile = path.join(folder, 'out.png');
  const outcomes = await run(front, [
    { verb: 'file', apiKey: 'wrong', path: photo, outputFile },
    { verb: 'file', apiKey, path: photo, size: 'full', outputFile },
    { verb: 'file', apiKey, path: text, outputFile },
    { verb: 'url', apiKey, url: 'http://127.0.0.1/private', outputFile },
    { verb: 'base64', apiKey, base64img: '', outputFile },
    { verb: 'base64', apiKey, base64img: 'AAAA', size: 'huge', outputFile },
  ]);
  const first = outcomes.map((outcome) => ('errors' in outcome ? outcome.errors[0] : undefined));
  t.deepEqual(
    first.map((error) => error?.['code']),
    [
      'auth_failed',
      'insufficient_credits',
      'invalid_file_type',
      'failed_image_download',
      'missing_source',
      'invalid_size',
    ],
  );
  t.true(first.every((error) => typeof error?.['title'] === 'string' && typeof error['detail'] === 'string'));
  t.false(existsSync(outputFile));
});
