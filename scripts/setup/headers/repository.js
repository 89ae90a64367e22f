import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SetupError } from '../step.js';

/**
 * The headers that the addon includes, of release 1.21.0: the same bytes in Debian's libonnxruntime-dev, from
 * which these digests were taken, and in the repository at that tag.
 */
export const knownRelease = {
  tag: 'v1.21.0',
  sha256: {
    'onnxruntime_c_api.h': '7783e9664bdb0b1b36145b5c8587dd1bc9a399aa000edf2e3dd03003cafc6882',
    'onnxruntime_cxx_api.h': 'b3b27d6a6fced0725e3f188379cca008b1d7a456997684756374d4b388f2cf05',
    'onnxruntime_cxx_inline.h': '7f448e994c732eacd9e49900365fefa8f1ac998a6d6eb78e5f4aab1b8d9d8900',
    'onnxruntime_float16.h': '6c4db3d1954b266c4febe413351af86cac922e3448538e7e452e51d646e56a4a',
    'onnxruntime_session_options_config_keys.h':
      '1fbd110d53e1babe6f00c72b88b48faf2ef86c3b1fea8e0989df8632af5a9e0f',
  },
};

export const files = Object.keys(knownRelease.sha256);

/** URL of single files in the repository; ONNXRUNTIME_HEADERS_URL replaces it by a mirror. */
const REPOSITORY = 'https://raw.githubusercontent.com/microsoft/onnxruntime';
const FOLDER = 'include/onnxruntime/core/session';

const seconds = 30;

async function download(url, digest) {
  let bytes;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(seconds * 1000) });
    if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
    bytes = Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    const reason =
      error.name === 'TimeoutError'
        ? `no answer within ${seconds} s`
        : (error.cause?.message ?? error.message);
    throw new SetupError(`${url} could not be fetched: ${reason}.`);
  }
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found !== digest)
    throw new SetupError(`${url} has the wrong checksum: its sha256 is ${found}, expected ${digest}.`);
  return bytes;
}

/**
 * Fetches the headers to `target`, all or none, each only with its known digest.
 * @param {{base?: string, release?: typeof knownRelease}} from
 */
export async function fetchFromRepository(
  target,
  progress,
  { base = process.env.ONNXRUNTIME_HEADERS_URL || REPOSITORY, release = knownRelease } = {},
) {
  const draft = `${target}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  try {
    for (const [file, digest] of Object.entries(release.sha256)) {
      progress(file);
      const address = `${base.replace(/\/+$/, '')}/${release.tag}/${FOLDER}/${file}`;
      await writeFile(path.join(draft, file), await download(address, digest));
    }
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
