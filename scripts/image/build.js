import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inBuild, inRoot } from '../setup/paths.js';
import { hashFiles, runProgram, SetupError } from '../setup/step.js';
import { expand, pairs, parseDockerfile } from './dockerfile.js';
import { baseRoot, cloneRoot, contextEntries, copyContext, inside } from './root.js';

/**
 * @typedef {{root: string, env: Record<string, string>, user: string, cwd: string, entry: string[], health: string[]}} Image
 */

async function copy(text, image, stages) {
  const [, from, source, target] = /^(?:--from=(\S+)\s+)?(\S+)\s+(\S+)$/.exec(text) ?? [];
  if (!source || !target) throw new SetupError(`COPY is not understood here: ${text}`);
  const to = path.join(image.root, path.resolve(image.cwd, target));
  if (from === undefined && source === '.') return copyContext(to);
  const other = stages.get(from);
  if (!other) throw new SetupError(`COPY names a stage that is not there: ${text}`);
  mkdirSync(to, { recursive: true });
  await runProgram('image-copy', 'cp', ['-a', `${path.join(other.root, source)}/.`, to]);
}

/** Instructions that only describe how to start the image. */
const describing = {
  ENV: (image, text) => Object.assign(image.env, pairs(text)),
  USER: (image, text) => {
    image.user = text;
  },
  WORKDIR: (image, text) => {
    image.cwd = path.resolve(image.cwd, text);
  },
  ENTRYPOINT: (image, text) => image.entry.unshift(...JSON.parse(text)),
  CMD: (image, text) => image.entry.push(...JSON.parse(text)),
  HEALTHCHECK: (image, text) => {
    image.health = JSON.parse(text.slice(text.indexOf('[')));
  },
};

/** Instructions that build something. */
const making = {
  WORKDIR: async (image) => {
    mkdirSync(path.join(image.root, image.cwd), { recursive: true });
  },
  COPY: (image, text, { stages }) => copy(text, image, stages),
  RUN: (image, text, { values, progress, log }) =>
    inside(image.root, expand(text, values), { cwd: image.cwd, env: image.env, progress, log }),
};

/**
 * Executes a Dockerfile in fresh Debian roots, without a container engine. Needs root. A stage that an earlier call
 * completed from the same steps and files is reused.
 * @param {string} file from the root of the repository
 * @param {Record<string, string>} given values for its ARGs
 * @returns {Promise<Image>} what its last stage made
 */
export async function buildImage(file, given, progress) {
  const stages = new Map();
  let image;
  let key = await hashFiles(contextEntries());
  for (const { name, base, steps } of parseDockerfile(readFileSync(inRoot(file), 'utf8'), given)) {
    if (!/^node:/.test(base)) throw new SetupError(`Nothing here stands for the image ${base}.`);
    image = { root: inBuild('image', name), env: {}, user: '0:0', cwd: '/', entry: [], health: [] };
    stages.set(name, image);
    const values = Object.assign(
      {},
      ...steps.filter(({ op }) => op === 'ARG').map(({ text }) => pairs(text)),
    );
    for (const argument of Object.keys(values)) values[argument] = given[argument] ?? values[argument];
    key = await hashFiles([], `${key}${JSON.stringify([base, steps, values])}`);
    const stamp = `${image.root}.made`;
    const made = existsSync(stamp) && readFileSync(stamp, 'utf8') === key;
    if (!made) {
      rmSync(stamp, { force: true });
      await cloneRoot(await baseRoot('npm run image', progress), image.root);
    }
    for (const [index, { op, text }] of steps.entries()) {
      progress(`${name} ${index + 1}/${steps.length}: ${op} ${text}${made ? ' (made before)' : ''}`);
      describing[op]?.(image, text);
      const log = `image-${name}-${index}`;
      if (!made) await making[op]?.(image, text, { stages, values, progress, log });
    }
    writeFileSync(stamp, key);
  }
  return image;
}
