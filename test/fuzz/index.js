// npm run fuzz -- [--minutes N] [--seed S] [--only pixels|requests|bodies|costs]: random images and options through the
// native core under the address and undefined-behaviour sanitizers, then damaged image files through whole requests,
// then bodies that are broken in themselves, then a search for files that cost more than their pixels. A
// finding names the seed that makes it again: `npm run fuzz -- --minutes 0 --seed S --only …`.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { drawImage, KINDS } from '../../bench/quality/generate/index.js';
import { setup } from '../../scripts/setup/index.js';
import { onSupportedNode } from '../../scripts/setup/nodejs.js';
import { inBuild, inRoot } from '../../scripts/setup/paths.js';
import { processSettings } from '../../scripts/setup/process.js';
import { reportFailure } from '../../scripts/setup/report.js';
import { buildSanitized, runSanitized } from '../../scripts/setup/sanitizer.js';
import { runProgram, runStep, SetupError } from '../../scripts/setup/step.js';

const SANITIZERS = 'address,undefined';

function options() {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } },
  });
  const minutes = Number(values.minutes ?? 1);
  const seed = Number(values.seed ?? Date.now());
  if (!(minutes >= 0) || !Number.isSafeInteger(seed) || seed < 0)
    throw new SetupError('--minutes takes a number, --seed a whole one.');
  const parts = values.only === undefined ? ['pixels', 'requests', 'bodies', 'costs'] : [values.only];
  if (!parts.every((part) => ['pixels', 'requests', 'bodies', 'costs'].includes(part)))
    throw new SetupError('--only takes pixels, requests, bodies or costs.');
  return { seconds: Math.round((minutes * 60) / parts.length), seed, parts };
}

/** Subjects with hair, holes, glass and blur, drawn with their alpha, as files that need no decoder. */
function writeCorpus() {
  const folder = inBuild('fuzz', 'corpus');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const kind of KINDS) {
    const { width, height, composite, alpha } = drawImage({ kind, width: 320, height: 240, seed: 7 });
    const rgba = Buffer.alloc(width * height * 4);
    for (let i = 0; i < alpha.length; i++) {
      rgba.set(composite.subarray(i * 3, i * 3 + 3), i * 4);
      rgba[i * 4 + 3] = alpha[i];
    }
    const header = `P7\nWIDTH ${width}\nHEIGHT ${height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n`;
    writeFileSync(`${folder}/${kind}.pam`, Buffer.concat([Buffer.from(header, 'latin1'), rgba]));
  }
  return folder;
}

async function pixels({ seconds, seed }) {
  await buildSanitized(SANITIZERS, 'fuzz_stress');
  await runSanitized(SANITIZERS, 'fuzz_stress', [String(seconds), String(seed), writeCorpus()]);
}

const throughService = (name, title, test, { seconds, seed }) =>
  runStep({
    name,
    title,
    inputs: async () => String(Date.now()),
    products: [],
    work: (progress) =>
      runProgram(
        name,
        process.execPath,
        [inRoot('node_modules', 'ava', 'entrypoints', 'cli.mjs'), inBuild('ts', 'test', ...test)],
        {
          env: { ...processSettings(), CUTOUT_FUZZ_SECONDS: String(seconds), CUTOUT_FUZZ_SEED: String(seed) },
          progress,
        },
      ),
  });

const requests = (given) =>
  throughService('fuzz-requests', 'damaged images in requests', ['fuzz', 'images.test.js'], given);
const costs = (given) =>
  throughService('fuzz-costs', 'files that cost much', ['fuzz', 'costs.test.js'], given);
const bodies = (given) => throughService('fuzz-bodies', 'broken bodies', ['http', 'fuzz.test.js'], given);

await onSupportedNode();
try {
  const given = options();
  console.log(`seed ${given.seed}`);
  await setup({ tests: true });
  if (given.parts.includes('pixels')) await pixels(given);
  if (given.parts.includes('requests')) await requests(given);
  if (given.parts.includes('bodies')) await bodies(given);
  if (given.parts.includes('costs')) await costs(given);
  console.log('No findings.');
} catch (error) {
  reportFailure(error);
}
