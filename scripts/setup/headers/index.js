import { readFileSync } from 'node:fs';
import { readOsRelease } from '../distribution.js';
import { inBuild, inRoot } from '../paths.js';
import { runStep, SetupError } from '../step.js';
import { debianSource, fetchFromDebian, machineSources } from './debian.js';
import { localHeaders, usable } from './local.js';
import { fetchFromRepository, files } from './repository.js';

const fetched = inBuild('onnxruntime');

/** Release of the library; its minor number is its API version, and headers must not be newer. */
const newest = () =>
  Number(
    JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).dependencies['onnxruntime-node'].split('.')[1],
  );

/** The folder with ONNX Runtime's headers, or undefined if they must be fetched first. */
export const findHeaders = () => localHeaders(newest()) ?? (usable(fetched, newest()) ? fetched : undefined);

const ADVICE = `Put the header files of ONNX Runtime 1.23 or newer (${files.join(', ')}) into a folder and name it in ONNXRUNTIME_INCLUDE_DIR.`;

/** Node.js uses a proxy only if this option is set. */
const proxyAdvice = ({ HTTPS_PROXY, https_proxy, NODE_USE_ENV_PROXY } = process.env) =>
  (HTTPS_PROXY || https_proxy) && !NODE_USE_ENV_PROXY
    ? ' Or, to go through your proxy, set NODE_USE_ENV_PROXY=1.'
    : '';

/**
 * From Debian's package if the system is Debian and it is available, else from the runtime's own repository.
 * @param {(text: string) => void} progress
 * @param {{target?: string, osRelease?: string, entries?: ReturnType<typeof machineSources>,
 *          repository?: Parameters<typeof fetchFromRepository>[2]}} from
 */
export async function fetchHeaders(
  progress,
  { target = fetched, osRelease = readOsRelease(), entries = machineSources(), repository } = {},
) {
  const failures = [];
  const source = debianSource(osRelease, entries);
  if (source) {
    try {
      await fetchFromDebian(source, target, progress);
      if (usable(target, newest())) return;
      failures.push('From Debian: its package has the headers of a release that is not allowed.');
    } catch (error) {
      failures.push(`From Debian: ${error.message}`);
    }
  }
  try {
    await fetchFromRepository(target, progress, repository);
  } catch (error) {
    failures.push(`From its repository: ${error.message}`);
    throw new SetupError(
      `ONNX Runtime's headers are not on this machine and could not be fetched.\n\n${failures.join('\n\n')}\n\n${ADVICE}${proxyAdvice()}`,
    );
  }
}

/**
 * Folder of ONNX Runtime's headers: that of ONNXRUNTIME_INCLUDE_DIR, else the system's, else they are fetched to
 * `build/onnxruntime`. Rejects with SetupError.
 */
export async function provideHeaders() {
  const found = findHeaders();
  if (found) return found;
  await runStep({
    name: 'headers',
    title: "fetch ONNX Runtime's headers",
    inputs: async () => String(Date.now()),
    products: [],
    work: (progress) => fetchHeaders(progress),
  });
  return fetched;
}
