// npm run image: builds deploy/Dockerfile in fresh Debian roots, without a container engine, and tests the result: its
// size, its user, a read-only root, one cut-out, an orderly exit. Needs root and debootstrap; takes ten minutes.
//   npm run image -- [ARG=value …]     networks are taken from CUTOUT_TEST_MODELS, else pulled
import { buildImage } from './image/build.js';
import { prove, sizeOf, writable } from './image/prove.js';
import { onSupportedNode } from './setup/nodejs.js';
import { reportFailure } from './setup/report.js';
import { SetupError } from './setup/step.js';

/** Largest size of the CPU image on disk, in bytes. */
const maxBytes = 700e6;

await onSupportedNode();
try {
  if (process.getuid?.() !== 0)
    throw new SetupError('Only root can make a root of its own: run this as root.');
  const given = Object.fromEntries(
    process.argv.slice(2).map((argument) => argument.split(/=(.*)/s).slice(0, 2)),
  );
  const image = await buildImage('deploy/Dockerfile', given, (text) => {
    if (/^\w+ \d+\/\d+: /.test(text)) console.log(`  ${text}`);
  });
  const bytes = sizeOf(image.root);
  console.log(`  size: ${(bytes / 1e6).toFixed(0)} MB`);
  if (bytes > maxBytes && given.NETWORKS === undefined)
    throw new SetupError(`At most ${maxBytes / 1e6} MB are allowed.`);
  const loose = writable(image).filter((file) => file !== '/data');
  if (loose.length > 0) throw new SetupError(`Its user may write to: ${loose.slice(0, 5).join(', ')}`);
  const { readyMs, allocator } = await prove(image, {
    models: given.NETWORKS ? undefined : process.env.CUTOUT_TEST_MODELS,
    offline: Boolean(given.NETWORKS),
  });
  console.log(
    `  ready in ${(readyMs / 1000).toFixed(1)} s as user ${image.user}, ${allocator}; one image cut out`,
  );
} catch (error) {
  reportFailure(error);
}
