import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { modelsFolder, root, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { imageHost } from '../fixtures/imageHost.ts';
import { scene } from '../fixtures/images.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { startService } from '../fixtures/service.ts';
import { zipEntries } from './support/zipEntries.ts';

/**
 * Calls that were recorded against the published API in 2020, repeated here. Where the current contract says
 * more (codes and details of errors, headers of the subject's box), the contract counts.
 */
interface Exchange {
  readonly name: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly x_api_key: string;
    readonly body_text?: string;
    readonly multipart?: readonly {
      readonly name: string;
      readonly value?: string;
      readonly value_file?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }[];
  };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body_text?: string;
    readonly body_file?: string;
  };
}

const folder = path.join(root, '..', 'shared', 'data', 'recorded');
const here = existsSync(folder);
const recorded = (name: string) => readFileSync(path.join(folder, name));

const exchanges: readonly Exchange[] = here
  ? readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => JSON.parse(recorded(name).toString()))
  : [];

function exchange(name: string): Exchange {
  const found = exchanges.find((each) => each.name === name);
  if (!found) throw new Error(`no recording ${name}`);
  return found;
}

/** The recorded body, byte for byte as the gem built it. */
function bodyOf({ request }: Exchange): Buffer | undefined {
  const { multipart, body_text: text } = request;
  if (!multipart) return text === undefined ? undefined : Buffer.from(text);
  const boundary = /boundary=(.+)$/.exec(request.headers['Content-Type'] ?? '')?.[1] ?? '';
  const parts = multipart.flatMap(({ name, value, value_file: file, headers }) => {
    const lines = headers ?? { 'Content-Disposition': `form-data; name="${name}"` };
    const head = Object.entries(lines).map(([field, text]) => `${field}: ${text}\r\n`);
    return [
      Buffer.from(`--${boundary}\r\n${head.join('')}\r\n`),
      file === undefined ? Buffer.from(value ?? '') : recorded(file),
      Buffer.from('\r\n'),
    ];
  });
  return Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);
}

interface Replayed {
  readonly answer: Response;
  readonly bytes: Buffer;
}

async function replay(each: Exchange, url: string, key: string, body = bodyOf(each)): Promise<Replayed> {
  const { method, path: target, headers, x_api_key: recordedKey } = each.request;
  const { 'Content-Length': _, ...sent } = headers;
  const answer = await fetch(`${url}${target}`, {
    method,
    headers: { ...sent, 'X-Api-Key': recordedKey.startsWith('a valid key') ? key : recordedKey },
    ...(body && { body: new Uint8Array(body) }),
  });
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
}

/** Headers of the published API's proxy and framework. */
const notOfTheContract = new Set(['etag', 'via', 'alt-svc']);
const shapes: Readonly<Record<string, RegExp>> = {
  'x-ratelimit-remaining': /^\d+$/,
  'x-ratelimit-reset': /^\d{10}$/,
  'x-type': /^(person|product|animal|car|other)$/,
  date: / GMT$/,
  'content-length': /^\d+$/,
};

/** Same status; every recorded header is present, with the same value or form. */
function checkHead(t: ExecutionContext, { response }: Exchange, { answer, bytes }: Replayed): void {
  t.is(answer.status, response.status);
  for (const [name, value] of Object.entries(response.headers)) {
    const lower = name.toLowerCase();
    if (notOfTheContract.has(lower)) continue;
    const got = answer.headers.get(lower) ?? '';
    const shape = shapes[lower];
    if (shape) t.regex(got, shape, lower);
    else t.is(got, value, lower);
  }
  t.is(Number(answer.headers.get('content-length')), bytes.length);
  t.false(answer.headers.has('content-encoding'));
  t.false(answer.headers.has('transfer-encoding'));
}

const chunkNames = (png: Buffer): string[] => {
  const names: string[] = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    names.push(png.toString('latin1', at + 4, at + 8));
  return [...new Set(names)];
};

interface Pixels {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
}

async function rgba(bytes: Buffer): Promise<Pixels> {
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

/** The numbers of hidden, opaque and soft pixels, after checking the rules of docs/contract.md section 7.5 on each. */
function checkPixels(t: ExecutionContext, { data }: Pixels, source: Pixels) {
  let [hidden, opaque, soft, unlike, stained] = [0, 0, 0, 0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const alpha = data[i + 3];
    if (alpha === 0) {
      hidden += 1;
      if (data[i] || data[i + 1] || data[i + 2]) stained += 1;
    } else if (alpha === 255) {
      opaque += 1;
      for (let c = i; c < i + 3; c += 1)
        if (Math.abs((data[c] ?? 0) - (source.data[c] ?? 0)) > 1) unlike += 1;
    } else {
      soft += 1;
    }
  }
  t.is(stained, 0, 'colour under alpha 0');
  t.is(unlike, 0, 'opaque pixels that are not those of the source');
  return { hidden, opaque, soft };
}

async function checkImage(t: ExecutionContext, each: Exchange, { bytes }: Replayed): Promise<Pixels> {
  const theirs = recorded(each.response.body_file ?? '');
  t.deepEqual(chunkNames(bytes), chunkNames(theirs));
  // Depth 8, RGBA, not interlaced.
  t.deepEqual([...bytes.subarray(24, 29)], [...theirs.subarray(24, 29)]);
  const ours = await rgba(bytes);
  const source = await rgba(recorded('person-in-field.jpg'));
  t.deepEqual([ours.width, ours.height], [source.width, source.height]);
  const { hidden, opaque } = checkPixels(t, ours, source);
  t.true(hidden > 0 && opaque > 0);
  return ours;
}

async function checkZip(
  t: ExecutionContext,
  each: Exchange,
  { bytes }: Replayed,
  png: Pixels,
): Promise<void> {
  const ours = zipEntries(bytes);
  const theirs = zipEntries(recorded(each.response.body_file ?? ''));
  const layout = (entries: typeof ours) =>
    entries.map(({ name, method, flags }) => ({ name, method, flags }));
  t.deepEqual(
    layout(ours).map(({ name, method }) => ({ name, method })),
    layout(theirs).map(({ name, method }) => ({ name, method })),
  );
  t.true(
    ours.every(({ flags }) => (flags & 8) === 0),
    'no data descriptors',
  );
  const [color, alpha] = ours;
  if (!color || !alpha) return t.fail('two entries');
  const [ourColor, theirColor] = await Promise.all(
    [color, theirs[0]].map((entry) => sharp(entry?.data).metadata()),
  );
  for (const key of ['format', 'width', 'height', 'channels', 'chromaSubsampling', 'isProgressive'] as const)
    t.is(ourColor?.[key], theirColor?.[key], key);
  // 8-bit gray, not interlaced: the Go client accepts nothing else.
  t.deepEqual([...alpha.data.subarray(24, 29)], [...(theirs[1]?.data.subarray(24, 29) ?? [])]);
  const matte = await sharp(alpha.data).extractChannel(0).raw().toBuffer();
  t.true(
    matte.every((value, i) => value === png.data[i * 4 + 3]),
    'the alpha of the PNG',
  );
  // The original background is still there.
  const [image, source] = await Promise.all([rgba(color.data), rgba(recorded('person-in-field.jpg'))]);
  let difference = 0;
  let count = 0;
  for (let i = 0; i < matte.length; i += 1) {
    if (matte[i] !== 0) continue;
    for (let c = i * 4; c < i * 4 + 3; c += 1) {
      difference += Math.abs((image.data[c] ?? 0) - (source.data[c] ?? 0));
      count += 1;
    }
  }
  t.true(difference / count < 6, `background differs by ${(difference / count).toFixed(1)} levels`);
}

const keyOf = (data: string) => readFileSync(path.join(data, 'local-key'), 'utf8').trim();

const serve = (t: ExecutionContext, data: string, env: Record<string, string>): Promise<Serving> =>
  startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_KEEP_SECONDS: '0',
    // The recorded account had none.
    CUTOUT_FREE_PREVIEWS_MONTH: '0',
    ...env,
  });

/** All calls with the recorded photo, and those about the account; returns the matte of the PNG. */
async function replayUploads(t: ExecutionContext, server: Serving, key: string): Promise<Pixels> {
  const png = exchange('from-file-person-in-field');
  const first = await replay(png, server.url, key);
  checkHead(t, png, { ...first });
  const pixels = await checkImage(t, png, first);
  for (const name of ['no-zip-upgrade', 'zip-upgrade-off']) {
    const again = await replay(exchange(name), server.url, key);
    checkHead(t, exchange(name), again);
    t.deepEqual(again.bytes, first.bytes, 'the same image every time');
  }
  for (const name of ['zip-upgrade', 'zip-person-in-field']) {
    const zip = await replay(exchange(name), server.url, key);
    checkHead(t, exchange(name), zip);
    await checkZip(t, exchange(name), zip, pixels);
  }
  return pixels;
}

test('uploads of the recorded photo: status, headers, PNG and ZIP', async (t) => {
  if (!here) return sayLeftOut(t, `${folder} is not here`);
  const data = temporaryFolder(t);
  const server = await serve(t, data, { CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')) });
  await replayUploads(t, server, keyOf(data));
});

const models = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

test('the default network finds the person in the recorded photo', async (t) => {
  if (!here) return sayLeftOut(t, `${folder} is not here`);
  if (!existsSync(path.join(models, 'isnet', 'source.onnx')))
    return sayLeftOut(t, `the network isnet is not in ${models}`);
  t.timeout(300_000);
  const data = temporaryFolder(t);
  const server = await serve(t, data, { CUTOUT_MODELS_DIR: models, CUTOUT_MODEL: 'isnet' });
  const ours = await replayUploads(t, server, keyOf(data));
  const theirs = await rgba(recorded('person-in-field.png'));
  let [both, either, difference] = [0, 0, 0];
  for (let i = 3; i < ours.data.length; i += 4) {
    const [a, b] = [ours.data[i] ?? 0, theirs.data[i] ?? 0];
    both += Math.min(a, b);
    either += Math.max(a, b);
    difference += Math.abs(a - b);
  }
  const overlap = both / either;
  const mean = difference / (ours.width * ours.height);
  t.log(`overlap with the recorded matte ${overlap.toFixed(4)}, mean difference ${mean.toFixed(2)} levels`);
  t.true(overlap > 0.9);
});

test('account, and refused keys', async (t) => {
  if (!here) return sayLeftOut(t, `${folder} is not here`);
  const service = await startService(t, { credits: 4943, freePreviews: 0 });
  const account = exchange('account');
  const { answer, bytes } = await replay(account, service.url, service.key);
  checkHead(t, account, { answer, bytes });
  const leaves = (value: unknown): string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => leaves(inner).map((rest) => `${key}.${rest}`))
      : [typeof value];
  const [ours, theirs] = [JSON.parse(bytes.toString()), JSON.parse(account.response.body_text ?? '')];
  t.deepEqual(leaves(ours), leaves(theirs));
  t.is(ours.data.attributes.credits.total, theirs.data.attributes.credits.total);

  for (const name of ['account-invalid-api-key', 'from-file-person-in-field-invalid-api-key']) {
    const refused = await replay(exchange(name), service.url, service.key);
    checkHead(t, exchange(name), refused);
    const [error] = JSON.parse(exchange(name).response.body_text ?? '').errors;
    t.like(JSON.parse(refused.bytes.toString()), { errors: [error] });
    t.false(refused.answer.headers.has('x-ratelimit-limit'));
  }
});

test('image addresses: a photo, and one that does not exist', async (t) => {
  if (!here) return sayLeftOut(t, `${folder} is not here`);
  const service = await startService(t, { freePreviews: 0 });
  // The recorded addresses are external; the photo at the first is not part of the recording.
  const photo = await scene({ width: 720, height: 1080 });
  const base = await imageHost(
    t,
    (req, res) => void (req.url === '/404.png' ? res.writeHead(404).end() : res.end(photo)),
  );
  const withUrl = (each: Exchange, target: string) =>
    Buffer.from(
      (each.request.body_text ?? '').replace(/image_url=[^&]+/, `image_url=${encodeURIComponent(target)}`),
    );

  const found = exchange('from-url-back-jpg');
  const first = await replay(found, service.url, service.key, withUrl(found, `${base}/photo.jpg`));
  checkHead(t, found, first);

  const lost = exchange('from-url-non-existent-image');
  const second = await replay(lost, service.url, service.key, withUrl(lost, `${base}/404.png`));
  checkHead(t, lost, second);
  // The recorded title contained the reason; by the contract the title has the address and the detail the reason.
  t.deepEqual(JSON.parse(second.bytes.toString()), {
    errors: [
      {
        title: `Failed to download image from given image_url: ${base}/404.png`,
        code: 'failed_image_download',
        detail: 'HTTP Status 404',
      },
    ],
  });
  t.false(second.answer.headers.has('x-ratelimit-limit'));
});
