import { SetupError } from '../setup/step.js';

/**
 * @typedef {{op: string, text: string}} Instruction
 * @typedef {{name: string, base: string, steps: Instruction[]}} Stage
 */

/** Substitutes `$NAME` and `${NAME}`; unknown names become empty, as in a Dockerfile. */
export const expand = (text, values) =>
  text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced, plain) => values[braced ?? plain] ?? '');

/** `a=b c="d e"` as an object. */
export const pairs = (text) =>
  Object.fromEntries(
    [...text.matchAll(/(\w+)=(?:"([^"]*)"|(\S*))/g)].map(([, name, quoted, plain]) => [
      name,
      quoted ?? plain,
    ]),
  );

/**
 * The stages of a Dockerfile. Supports only the instructions that our files use; anything else is an error, so that
 * nothing is ignored.
 * @param {string} text
 * @param {Record<string, string>} given values for its ARGs
 * @returns {Stage[]}
 */
export function parseDockerfile(text, given = {}) {
  const lines = text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  /** @type {Stage[]} */
  const stages = [];
  const before = {};
  for (const line of lines) {
    const [, op = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    const stage = stages.at(-1);
    if (op === 'ARG' && !stage) {
      Object.assign(before, pairs(rest));
      for (const name of Object.keys(before)) if (name in given) before[name] = given[name];
    } else if (op === 'FROM') {
      const [, base, name] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(expand(rest, before)) ?? [];
      stages.push({ name: name ?? String(stages.length), base, steps: [] });
    } else if (stage && known.has(op)) {
      stage.steps.push({ op, text: rest });
    } else {
      throw new SetupError(`This Dockerfile has a line that is not understood here: ${line}`);
    }
  }
  if (stages.length === 0) throw new SetupError('This Dockerfile has no FROM.');
  return stages;
}

const known = new Set([
  'ARG',
  'CMD',
  'COPY',
  'ENTRYPOINT',
  'ENV',
  'EXPOSE',
  'HEALTHCHECK',
  'RUN',
  'STOPSIGNAL',
  'USER',
  'VOLUME',
  'WORKDIR',
]);
