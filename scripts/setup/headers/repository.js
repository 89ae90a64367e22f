import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SetupError } from '../step.js';

/**
 * The headers that the addon includes, of release 1.23.2. The digests were taken from Debian's libonnxruntime-dev; the
 * repository at that tag is expected to have the same bytes.
 */
export const knownRelease = {
  tag: 'v1.23.2',
  sha256: {
    'onnxruntime_c_api.h': '71125e66180a991d65c9bdbad4aa20daaa1f7a48c7a5c0fa5f18f250ac839a02',
    'onnxruntime_cxx_api.h': '08ae3698d11d90590a0a777ad97e58172b8735fcbe27edcc8a7b94aa018e5de9',
    'onnxruntime_cxx_inline.h': '226f883503ade7299f9474018a070dc94091c1541bcc6d419599eea0c2ee578e',
    'onnxruntime_ep_c_api.h': 'b92778f50c36ecdf53d0344e0129a78b306afed653f81bba8a9597e3e6e9546f',
    'onnxruntime_float16.h': '6c4db3d1954b266c4febe413351af86cac922e3448538e7e452e51d646e56a4a',
    'onnxruntime_session_options_config_keys.h':
      'a7ac653a6cce0b03aea2515685a162d2956a158cf88313f22e8157f098fd6f66',
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
