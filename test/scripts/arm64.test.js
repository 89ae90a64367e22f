import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import sharp from 'sharp';
import { makeArchive } from '../../scripts/package/archive.js';
import {
  crossBuild,
  emulated,
  emulatedNode,
  missingForArm64,
  stressProgram,
} from '../../scripts/package/cross.js';
import { needsOf, tooNew } from '../../scripts/package/elf.js';
import { inBuild, inRoot } from '../../scripts/setup/paths.js';
import { minGlibc } from '../../scripts/setup/requirements.js';
import { watchStarted } from '../../scripts/startedServer.js';

const { unless } = await import('../../build/ts/test/fixtures/leftOut.js');
const { modelsFolder } = await import('../../build/ts/test/fixtures/cli.js');

/** Rejects if the program fails. */
const run = promisify(execFile);

const isLong = process.env.CUTOUT_TEST_LONG === '1';
const missing = isLong ? missingForArm64() || undefined : 'time: arm64 runs with CUTOUT_TEST_LONG=1';
const arm64 = unless(missing, test.serial);

/** Emulation takes up to a hundred times as long as the processor. */
const patience = 60 * 60_000;
const key = 'key-of-the-arm64-test';
const folder = mkdtempSync(path.join(tmpdir(), 'cutout-arm64-'));
const main = ['build', 'ts', 'src', 'main.js'];
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const settings = (name, models) => ({
  PATH: process.env.PATH,
  HOME: folder,
  CUTOUT_DATA_DIR: path.join(folder, name),
  CUTOUT_MODELS_DIR: models,
  CUTOUT_MODEL: 'u2netp',
  CUTOUT_SUBJECT_TYPES: 'off',
});

arm64('built for arm64, the pixel loops equal their scalar versions', async (t) => {
  t.timeout(patience);
  await crossBuild();
  for (const name of ['kernels_stress', 'png_stress']) {
    const [program, ...args] = emulated(stressProgram(name));
    await t.notThrowsAsync(run(program, [...args, '4']), name);
  }
});

/** Processors as qemu names them, and the kernels for 8 bits that each has. */
const kernels = {
  max: ' i8mm asimddp',
  'neoverse-n1': ' asimddp',
  'cortex-a72': ' no kernel',
};

for (const [cpu, names] of Object.entries(kernels))
  arm64(`convolutions in 8 bits on ${cpu} equal their definition, by${names}`, async (t) => {
    t.timeout(patience);
    await crossBuild();
    const library = inRoot('node_modules/onnxruntime-node/bin/napi-v6/linux/arm64/libonnxruntime.so.1');
    const [program, ...args] = emulated(stressProgram('low_precision_stress'), cpu);
    const { stdout } = await run(program, [...args, '20', library]);
    t.is(stdout, `20 rounds with${names}\n`);
  });

arm64('the archive for arm64 has an addon for it that needs nothing newer', async (t) => {
  t.timeout(patience);
  const addon = await crossBuild();
  t.is(needsOf(addon)?.cpu, 'arm64');
  t.deepEqual(tooNew(addon, minGlibc), []);
  t.deepEqual(
    needsOf(addon).libraries.filter((name) => name.startsWith('libstdc++')),
    [],
  );
  mkdirSync(inBuild('package'), { recursive: true });
  const archive = path.join(folder, 'cutout.tgz');
  await makeArchive(archive, { addons: new Map([[{ os: 'linux', cpu: 'arm64' }, addon]]), level: 1 });
  await run('tar', ['-xzf', archive, '-C', folder]);
});

/** The arm64 program of the archive; bin/cutout.js would replace its process, which an emulator cannot. */
const installed = async () => [...(await emulatedNode()), path.join(folder, 'package', 'app', ...main)];

arm64('a cut-out on arm64 is that on x64', async (t) => {
  t.timeout(patience);
  const networks = path.join(folder, 'pulled');
  const own = [process.execPath, inRoot(...main)];
  const photo = path.join(folder, 'photo.png');
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="240">
    <rect width="320" height="240" fill="#dfe6ea"/><circle cx="160" cy="65" r="37" fill="#e0b08a"/>
    <ellipse cx="160" cy="150" rx="65" ry="85" fill="#a3432c"/></svg>`;
  writeFileSync(photo, await sharp(Buffer.from(drawing)).png().toBuffer());
  // npm finds its registry and certificates as in the tests' surroundings.
  const env = { ...settings('pull', networks), ...process.env };
  await run(own[0], [...own.slice(1), 'models', 'pull', 'u2netp'], { env });
  // The same operators and weights on a sixth of the pixels: at its own size a run takes minutes under emulation.
  const source = path.join(networks, 'u2netp', 'source.onnx');
  await run(own[0], [...own.slice(1), 'models', 'add', source, '--name', 'small', '--size', '128x128'], {
    env,
  });
  const cutOut = async (name, [program, ...args]) => {
    const out = path.join(folder, name);
    await run(program, [...args, 'run', photo, '--out', out, '--model', 'small'], {
      env: settings(`${name}-data`, networks),
    });
    return await sharp(path.join(out, 'photo.png')).raw().toBuffer({ resolveWithObject: true });
  };
  const here = await cutOut('x64', own);
  const there = await cutOut('arm64', await installed());
  t.deepEqual(there.info, here.info);
  t.deepEqual([here.info.width, here.info.height, here.info.channels], [320, 240, 4]);
  const apart = { alpha: 0, colour: 0, bytes: 0 };
  for (const [i, value] of here.data.entries()) {
    const difference = Math.abs(value - there.data[i]);
    const part = i % 4 === 3 ? 'alpha' : 'colour';
    apart[part] = Math.max(apart[part], difference);
    if (difference > 0) apart.bytes += 1;
  }
  t.log(`largest difference in alpha ${apart.alpha}, in colour ${apart.colour} of 255; ${apart.bytes} bytes`);
  t.true(apart.alpha <= 1);
  const alpha = here.data.filter((_, i) => i % 4 === 3);
  t.deepEqual([Math.max(...alpha), Math.min(...alpha)], [255, 0]);
});

arm64('the archive for arm64 answers each request of `cutout check` as x64 does', async (t) => {
  t.timeout(patience);
  const networks = modelsFolder(path.join(folder, 'networks'));
  const [program, ...args] = await installed();
  const start = (name, command) => {
    const server = spawn(command[0], [...command.slice(1), 'serve', '--no-pull'], {
      env: { ...settings(name, networks), CUTOUT_PORT: '0', CUTOUT_API_KEY: key },
    });
    const started = watchStarted(server);
    t.teardown(async () => {
      server.kill('SIGKILL');
      await started.ended;
    });
    return { server, started };
  };
  const { server, started } = start('serve', [program, ...args]);
  const x64 = start('check', [process.execPath, inRoot(...main)]);
  const addresses = ['--server', await x64.started.url, '--against', await started.url];
  const { stdout } = await run(
    process.execPath,
    [inRoot(...main), 'check', ...addresses, '--full', '--json', '--timeout', '600'],
    {
      env: { ...settings('client', networks), CUTOUT_API_KEY: key, CUTOUT_AGAINST_KEY: key },
      maxBuffer: 1e8,
    },
  );
  const { requests } = JSON.parse(stdout);
  t.true(requests.length > 30);
  t.deepEqual(
    requests.flatMap(({ differences }) => differences.filter(({ kind }) => kind === 'contract')),
    [],
  );
  const pictures = requests.filter(({ mean }) => mean !== undefined);
  t.true(pictures.length > 15);
  for (const { request, mean } of pictures) t.true(mean < 0.05, request);
  server.kill('SIGTERM');
  t.is(await started.ended, 0);
});
