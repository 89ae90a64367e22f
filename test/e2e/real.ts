import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ExecutionContext } from 'ava';
import sharp from 'sharp';
import { root, type Serving, startServing, temporaryFolder } from '../fixtures/cli.ts';

export const models = process.env['CUTOUT_TEST_MODELS'] ?? path.join(root, 'data', 'models');

/** Why the default network cannot be used; undefined if it can. `npm test` pulls it. */
export const networkMissing = existsSync(path.join(models, 'isnet', 'source.onnx'))
  ? undefined
  : `the network isnet is not in ${models}`;

const key = 'test-key-of-the-local-account';

/** Settings of a server with the default network, without limits. */
export const realSettings = {
  CUTOUT_MODELS_DIR: models,
  CUTOUT_MODEL: 'isnet',
  CUTOUT_API_KEY: key,
  CUTOUT_RATE_LIMIT: '0',
};

/** `cutout serve` with these settings. */
export const startReal = (t: ExecutionContext): Promise<Serving> =>
  startServing(t, { ...realSettings, CUTOUT_DATA_DIR: temporaryFolder(t) });

export function cutOut(
  { url }: Serving,
  photo: Uint8Array,
  fields: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const form = new FormData();
  form.set('image_file', new Blob([photo]), 'photo');
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return fetch(`${url}/v1.0/removebg`, { method: 'POST', headers: { 'X-Api-Key': key }, body: form });
}

export interface Plane {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** The alpha of a cut-out, or the gray values of a matte without alpha, at the given size. */
export async function alphaOf(
  file: Uint8Array | string,
  size?: { width: number; height: number },
): Promise<Plane> {
  const { hasAlpha } = await sharp(file).metadata();
  const plane = hasAlpha ? sharp(file).extractChannel('alpha') : sharp(file).extractChannel(0);
  const sized = size ? plane.resize(size.width, size.height, { fit: 'fill' }) : plane;
  const { data, info } = await sized.toColourspace('b-w').raw().toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

/** Pearson's correlation of two planes of one size; 1 for two equal flat ones. */
export function correlation(a: Uint8Array, b: Uint8Array): number {
  const n = a.length;
  let [sumA, sumB, squaresA, squaresB, products] = [0, 0, 0, 0, 0];
  for (let i = 0; i < n; i++) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0];
    sumA += x;
    sumB += y;
    squaresA += x * x;
    squaresB += y * y;
    products += x * y;
  }
  const covariance = products / n - (sumA / n) * (sumB / n);
  const spread = Math.sqrt((squaresA / n - (sumA / n) ** 2) * (squaresB / n - (sumB / n) ** 2));
  return spread === 0 ? Number(Buffer.compare(a, b) === 0) : covariance / spread;
}
