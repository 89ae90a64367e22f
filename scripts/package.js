// npm run package: makes build/package/cutout-<version>.tgz, which `npm install` installs without a compiler and without
// a registry. On x64 it is for arm64 too, if Debian's g++-aarch64-linux-gnu is there. npm run package -- --prove installs
// it in a fresh Debian root without a compiler, starts it there, pulls the network and cuts out one image from outside;
// that needs root and debootstrap.
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { makeArchive, ownAddon } from './package/archive.js';
import { crossBuild, missingToBuildArm64 } from './package/cross.js';
import { missingForProof, prove } from './package/prove.js';
import { archiveFile } from './package/stage.js';
import { setup } from './setup/index.js';
import { kernelsForGpu } from './setup/native.js';
import { onSupportedNode } from './setup/nodejs.js';
import { root } from './setup/paths.js';
import { reportFailure } from './setup/report.js';

await onSupportedNode();
try {
  await setup({ kernels: true });
  const file = archiveFile();
  const addons = ownAddon();
  if (process.arch === 'x64') {
    const missing = missingToBuildArm64();
    if (missing) console.log(`  not for arm64, left out for ${missing}`);
    else addons.set({ os: 'linux', cpu: 'arm64' }, await crossBuild());
  }
  const kernels = kernelsForGpu();
  if (kernels === undefined)
    console.log('  without the kernels for a GPU (libcutout_cuda.so), left out for nvcc of CUDA 13');
  else console.log(`  with the kernels for a GPU: ${(statSync(kernels).size / 1e6).toFixed(1)} MB`);
  mkdirSync(path.dirname(file), { recursive: true });
  await makeArchive(file, { addons, kernels });
  const platforms = [...addons.keys()].map(({ os, cpu }) => `${os}-${cpu}`).join(', ');
  const megabytes = (statSync(file).size / 1e6).toFixed(0);
  console.log(`  ${path.relative(root, file)}: ${megabytes} MB, for ${platforms}`);
  if (process.argv.includes('--prove')) {
    const missing = missingForProof();
    if (missing) console.log(`  not installed in a fresh root, left out for ${missing}`);
    else {
      const { installMs, readyMs } = await prove(file);
      const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
      console.log(
        `  in a fresh Debian without a compiler: installed in ${seconds(installMs)}, ready after ${seconds(readyMs)} more with the network pulled, one image cut out`,
      );
    }
  }
} catch (error) {
  reportFailure(error);
}
