import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { Networks } from '../fixtures/engineSetup.ts';
import { unless } from '../fixtures/leftOut.ts';
import { device, loader, missing } from '../fixtures/swiftshader.ts';
import type { WebgpuResult, WebgpuTask } from '../fixtures/webgpuChild.ts';

/** Networks by WebGPU on SwiftShader, a device in software for Vulkan that Debian's package chromium carries. */

const networks = new Networks();
test.after.always(() => networks.remove());

const child = fileURLToPath(new URL('../fixtures/webgpuChild.js', import.meta.url));

const size = { width: 32, height: 32 };
const specs = [
  networks.spec('plain', { ...size, batch: true, sigmoid: true, gain: 4 }, { output: 'probability' }),
  networks.spec('deep', { ...size, batch: true, convolutions: 1, gain: 5, bias: 0.5 }),
] as const;

async function play(full: boolean, env: Readonly<Record<string, string>>): Promise<WebgpuResult> {
  const task: WebgpuTask = { libraries: [loader], full, specs };
  const run = spawn(process.execPath, [child, JSON.stringify(task)], {
    env: { ...process.env, XDG_RUNTIME_DIR: networks.folder, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  run.stdout.on('data', (part) => {
    out += part;
  });
  const [code] = await once(run, 'close');
  if (code !== 0) throw new Error(`The child ended with ${code}: ${out}`);
  return JSON.parse(out);
}

const withDevice = unless(missing, test.serial);

withDevice('networks run by WebGPU in batches, are cancelled, and give what the CPU gives', async (t) => {
  const result = await play(true, { VK_DRIVER_FILES: device });
  t.is(result.error, undefined);
  t.like(result.gpu, { name: 'first GPU of Vulkan' });
  t.true((result.partial ?? 0) > 1000, 'the networks give more than black and white');
  t.true((result.difference ?? 255) <= 1, `${result.difference} of 255`);
  t.true((result.batches?.[2] ?? 0) > 0, `${result.batches}`);
  t.is(result.cancelled, 'ENGINE_CANCELLED');
});

withDevice('a driver that is missing is an error with its remedy', async (t) => {
  const { error } = await play(false, { VK_DRIVER_FILES: '/nothing.json' });
  t.is(error?.code, 'ENGINE_DRIVER', error?.message);
  t.regex(error?.message ?? '', /no Vulkan driver works here.*libvulkan1/);
});
