// npm run node-versions [-- 22 …]: tests Cutout on each supported line of Node.js, and on one that is too old: in a clone of the
// last commit, set-up, tests of each part, then `npm start` and one cut-out. Node.js comes from the npm registry.
// Networks are taken from CUTOUT_TEST_MODELS, else pulled. Ten minutes on two cores.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { clone, forget } from './nodeVersions/clone.js';
import { proveStart } from './nodeVersions/start.js';
import { tests } from './nodeVersions/tests.js';
import { environmentOf, fetchNode, onSupportedNode } from './setup/nodejs.js';
import { inBuild } from './setup/paths.js';
import { triedReleases } from './setup/releases.js';
import { reportFailure } from './setup/report.js';
import { runProgram, SetupError } from './setup/step.js';

await onSupportedNode();

const place = inBuild('nodes');
const given = process.argv.slice(2);
const releases =
  given.length === 0
    ? triedReleases
    : triedReleases.filter(({ version }) => given.includes(version.split('.')[0]));

/** Steps on each line; `env` has its Node.js first on the path, and headers of another one, as npm passes them on. */
const stages = {
  'set-up': ({ folder, env, log }) => runProgram(log, 'npm', ['run', 'setup'], { cwd: folder, env }),
  tests: ({ folder, env, log }) =>
    runProgram(log, 'npm', ['test', '--', ...tests.map((name) => `build/ts/test/${name}.test.js`)], {
      cwd: folder,
      env,
    }),
  'cut-out': proveStart,
};

async function tried(release, folder) {
  const home = path.join(place, release.version);
  await fetchNode(release, home, () => {});
  // Headers of the system's Node.js, which set-up must not use.
  const env = { ...environmentOf(path.join(home, 'bin', 'node')), npm_config_nodedir: '/usr' };
  const results = [];
  forget(folder);
  for (const [name, stage] of Object.entries(stages)) {
    const started = Date.now();
    try {
      await stage({ folder, env, log: `nodes-${release.version}-${name}` });
      results.push(`${name} ok (${((Date.now() - started) / 1000).toFixed(0)} s)`);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      results.push(`${name} FAILED`);
      console.error(error.message);
      process.exitCode = 1;
    }
  }
  console.log(`Node.js ${release.version}: ${results.join(', ')}`);
}

try {
  if (releases.length === 0)
    throw new SetupError(
      `Known are ${triedReleases.map(({ version }) => version.split('.')[0]).join(', ')}.`,
    );
  mkdirSync(place, { recursive: true });
  const folder = path.join(place, 'clone');
  await clone(folder);
  for (const release of releases) await tried(release, folder);
} catch (error) {
  reportFailure(error);
}
