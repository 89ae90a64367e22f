import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { cli, modelsFolder, startCli, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { eventually } from '../fixtures/eventually.ts';
import { unless } from '../fixtures/leftOut.ts';
import { environment, missing } from '../fixtures/swiftshader.ts';

/** CUTOUT_DEVICE=auto as a whole: the processor against WebGPU on SwiftShader, a device in software that is slower. */

const withDevice = unless(missing, test.serial);

function setUp(t: ExecutionContext, tiny = {}) {
  const data = temporaryFolder(t);
  const models = modelsFolder(path.join(data, 'models'), tiny);
  const env = {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: models,
    CUTOUT_DEVICE: 'auto',
    CUTOUT_SUBJECT_TYPES: 'off',
    XDG_RUNTIME_DIR: data,
    ...environment,
  };
  return { env, file: path.join(models, 'u2netp', 'device.json') };
}

const measured = /measured with u2netp: cpu ([\d.]+), webgpu ([\d.]+) images\/s/;

withDevice(
  'the first start measures and takes the processor, the next one knows, and doctor says why',
  async (t) => {
    const { env, file } = setUp(t);
    const unmeasured = await cli(t, ['doctor'], env);
    t.regex(
      unmeasured.stdout.toString(),
      /u2netp on cpu \(auto: not measured yet: the first start measures cpu, webgpu\)/,
    );
    t.false(existsSync(file));
    const first = await startServing(t, env);
    const [, cpu, webgpu] = measured.exec(first.stderr()) ?? [];
    t.true(Number(cpu) > Number(webgpu), first.stderr());
    t.true(Number(webgpu) > 0);
    t.regex(first.stderr(), /^Measuring which device is the fastest: cpu, webgpu\.$/m);
    t.regex(first.stderr(), /^The device is cpu: measured with/m);
    t.regex(first.stderr(), /^Network {3}u2netp on cpu /m);
    first.child.kill('SIGTERM');
    t.is((await first.ended).code, 0);
    const kept = readFileSync(file, 'utf8');
    const second = await startServing(t, env);
    t.notRegex(second.stderr(), /Measuring/);
    t.like(measured.exec(second.stderr()), { 1: cpu, 2: webgpu });
    second.child.kill('SIGTERM');
    await second.ended;
    t.is(readFileSync(file, 'utf8'), kept);
    const { stdout } = await cli(t, ['doctor', '--json'], env);
    t.like(JSON.parse(stdout.toString()).network, { device: 'cpu', deviceBecause: JSON.parse(kept).because });
    // Without the GPU it is another question, which nothing has to be measured for.
    const { VK_DRIVER_FILES: _, ...without } = env;
    const third = await startServing(t, without);
    t.regex(third.stderr(), /The device is cpu: no GPU was found/);
    t.deepEqual(
      readdirSync(path.dirname(file)).filter((name) => name.includes('lock')),
      [],
    );
  },
);

withDevice('SIGTERM while a device is measured: the start ends, and no process is left', async (t) => {
  const { env, file } = setUp(t, { convolutions: 4 });
  const started = startCli(t, ['serve', '--no-pull'], { ...env, CUTOUT_PORT: '0', CUTOUT_LOG_LEVEL: 'info' });
  await eventually(() => /Measuring/.test(started.stderr()));
  const children = () =>
    readFileSync(`/proc/${started.child.pid}/task/${started.child.pid}/children`, 'utf8').trim();
  await eventually(() => children() !== '');
  const child = Number(children().split(' ')[0]);
  started.child.kill('SIGTERM');
  t.is((await started.ended).code, 0);
  t.throws(() => process.kill(child, 0), { code: 'ESRCH' });
  t.false(existsSync(file));
});
