import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { inBuild, inRoot } from '../setup/paths.js';
import { runProgram, SetupError } from '../setup/step.js';
import { expand, pairs, parseDockerfile } from './dockerfile.js';
import { baseRoot, cloneRoot, copyContext, inside } from './root.js';

/**
 * @typedef {{root: string, env: Record<string, string>, user: string, cwd: string, entry: string[], health: string[]}} Image
 */

/** `["a", "b"]` */
const list = (text) => JSON.parse(text);

async function copy(text, stage, stages) {
  const [, from, source, target] = /^(?:--from=(\S+)\s+)?(\S+)\s+(\S+)$/.exec(text) ?? [];
  if (!source || !target) throw new SetupError(`COPY is not understood here: ${text}`);
  const to = path.join(stage.root, path.resolve(stage.cwd, target));
  if (from === undefined && source === '.') return copyContext(to);
  const other = stages.get(from);
  if (!other) throw new SetupError(`COPY names a stage that is not there: ${text}`);
  mkdirSync(to, { recursive: true });
  await runProgram('image-copy', 'cp', ['-a', path.join(other.root, source, '.'), to]);
}

/**
 * Does what a Dockerfile says in fresh Debian roots, without a container engine. Needs root.
 * @param {string} file from the root of the repository
 * @param {Record<string, string>} given values for its ARGs
 * @returns {Promise<Image>} what its last stage made
 */
export async function buildImage(file, given, progress) {
  const stages = new Map();
  let image;
  for (const { name, base, steps } of parseDockerfile(readFileSync(inRoot(file), 'utf8'), given)) {
    if (!/^node:/.test(base)) throw new SetupError(`Nothing here stands for the image ${base}.`);
    const folder = inBuild('image', name);
    image = { root: folder, env: {}, user: '0:0', cwd: '/', entry: [], health: [] };
    stages.set(name, image);
    await cloneRoot(await baseRoot(progress), folder);
    const values = {};
    for (const [index, { op, text }] of steps.entries()) {
      progress(`${name} ${index + 1}/${steps.length}: ${op} ${text}`);
      if (op === 'ARG') Object.assign(values, pairs(text), pick(given, Object.keys(pairs(text))));
      else if (op === 'ENV') Object.assign(image.env, pairs(text));
      else if (op === 'USER') image.user = text;
      else if (op === 'WORKDIR') {
        image.cwd = path.resolve(image.cwd, text);
        mkdirSync(path.join(folder, image.cwd), { recursive: true });
      } else if (op === 'COPY') await copy(text, image, stages);
      else if (op === 'RUN')
        await inside(folder, expand(text, values), {
          cwd: image.cwd,
          env: image.env,
          progress,
          log: `image-${name}-${index}`,
        });
      else if (op === 'ENTRYPOINT') image.entry.unshift(...list(text));
      else if (op === 'CMD') image.entry.push(...list(text));
      else if (op === 'HEALTHCHECK') image.health = list(text.slice(text.indexOf('[')));
    }
  }
  return image;
}

const pick = (from, names) =>
  Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));
