import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext, TestFn } from 'ava';
import type {
  ComposePlan,
  EngineOptions,
  MattePlan,
  NativeEngine,
  NativeModule,
  NetworkSpec,
} from '../../src/engine/types.ts';
import { expectedAbi } from '../../src/engine/types.ts';
import { engineOptions, halves, Networks, planFor, until } from '../fixtures/engineSetup.ts';
import { BF16_KERNELS, INT8_KERNELS } from '../fixtures/lowPrecisionKernels.ts';

/** What every implementation of src/engine/types.ts must do. Registers its tests with `test`. */
export function testEngineContract(test: TestFn, load: () => NativeModule): void {
  const networks = new Networks();
  test.after.always(() => networks.remove());

  /** An engine that is closed when its test ends. */
  const start = (t: ExecutionContext, changes: Partial<EngineOptions> = {}): NativeEngine => {
    const native = load();
    const engine = new native.Engine(engineOptions(changes));
    t.teardown(() => engine.close(0));
    return engine;
  };
  const alphaAt = (data: Uint8Array, width: number, x: number, y: number) => data[(y * width + x) * 4 + 3];
  const digest = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');
  let files = 0;
  const name = () => `network${++files}`;

  test('versions: abi and the three version texts', (t) => {
    const native = load();
    t.is(native.abi, expectedAbi);
    new native.Engine(engineOptions());
    const { addon, simd, onnxruntime } = native.versions();
    t.regex(addon, /^\d+\.\d+\.\d+/);
    t.regex(simd, /^(x86-64-v[34]|baseline)$/);
    t.regex(onnxruntime, /^\d+\.\d+/);
  });

  test('versions: instruction sets are known ones, and those that Linux reports', (t) => {
    const { instructionSets, operators, refusedOperators } = load().versions();
    const kernels = [...INT8_KERNELS, ...BF16_KERNELS];
    const x86 = ['amx_int8', 'avx512_vnni', 'avx_vnni', 'amx_bf16', 'avx512_bf16', 'avx512', 'avx2'];
    const known = [...x86, 'i8mm', 'asimddp', 'asimd'];
    t.deepEqual(
      instructionSets,
      known.filter((name) => instructionSets.includes(name)),
    );
    // Operators exist for some of these; the system may refuse a process the tiles of AMX.
    t.deepEqual(
      operators,
      kernels.filter(
        (name) => instructionSets.includes(name) && (!name.startsWith('amx') || operators.includes(name)),
      ),
    );
    t.deepEqual(refusedOperators, []);
    if (process.platform !== 'linux') return;
    const flags =
      /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim().split(/\s+/) ??
      [];
    for (const name of known.filter((each) => each !== 'avx512')) {
      t.is(instructionSets.includes(name), flags.includes(name), name);
    }
  });

  test('load: measures opening and the first run', async (t) => {
    const engine = start(t);
    const info = await engine.load(networks.spec('info', { secondOutput: true }));
    t.is(info.name, 'info');
    t.true(info.loadMs > 0 && info.warmUpMs > 0);
  });

  test('load: a network that cannot be used is ENGINE_MODEL with one sentence that names the file', async (t) => {
    const engine = start(t);
    const broken: [string, ReturnType<typeof networks.spec>, RegExp][] = [];
    const missing = { ...networks.spec(name()), path: path.join(networks.folder, 'nothing.onnx') };
    broken.push(['missing', missing, /nothing\.onnx' does not exist/]);
    broken.push(['a folder', { ...missing, path: networks.folder }, /does not exist/]);
    const empty = networks.spec(name());
    writeFileSync(empty.path, '');
    broken.push(['empty', empty, /cannot be used/]);
    const cut = networks.spec(name(), { convolutions: 1 });
    truncateSync(cut.path, 20_000);
    broken.push(['cut short', cut, /cannot be used/]);
    const text = networks.spec(name());
    writeFileSync(text.path, 'not a network, but long enough to be one\n'.repeat(50));
    broken.push(['text', text, /cannot be used/]);
    broken.push([
      'other input size',
      { ...networks.spec(name()), width: 32 },
      /\[1, 3, 64, 64\].*\[1, 3, 64, 32\]/,
    ]);
    broken.push(['three maps', networks.spec(name(), { channels: 3 }), /\[1, 3, 64, 64\]; one map/]);
    broken.push(['two inputs', networks.spec(name(), { secondInput: true }), /2 inputs/]);
    for (const [what, spec, message] of broken) {
      const error = await t.throwsAsync(engine.load(spec), { code: 'ENGINE_MODEL', message }, what);
      t.true(error?.message.includes(spec.path), `${what}: ${error?.message}`);
      t.false(error?.message.includes('\n'), what);
    }
    await t.throwsAsync(engine.matte(1, halves(8, 8), planFor('nothing', { width: 8, height: 8 })), {
      code: 'ENGINE_MODEL',
      message: /'nothing'/,
    });
    t.is(engine.stats().failed, broken.length);
  });

  test('Engine: a GPU that cannot be used is an error with a remedy, not a silent run on the CPU', (t) => {
    for (const [provider, title] of [
      ['cuda', 'CUDA'],
      ['tensorrt', 'TensorRT'],
    ] as const) {
      // With libcutout_cuda.so CUDA needs the driver and the device alone.
      t.throws(() => start(t, { provider, deviceIds: [1023] }), {
        message: new RegExp(
          `^${title} was asked for and cannot be used: .*(Run \`cutout runtime install cuda\`|driver is not installed|no GPU)`,
        ),
      });
      t.throws(() => start(t, { provider, libraries: ['/nothing/libcublas.so.13'] }), {
        code: 'ENGINE_PROVIDER',
        message: /libcublas\.so\.13/,
      });
    }
    t.throws(() => start(t, { provider: 'webgpu', deviceIds: [1] }), {
      code: 'ENGINE_DEVICE',
      message: /^WebGPU was asked for and cannot be used: .*CUTOUT_DEVICE_ID can only be 0.*VK_DRIVER_FILES/,
    });
    t.throws(() => start(t, { provider: 'tensorrt-rtx', deviceIds: [1023], plugin: '/nothing/rtx.so' }), {
      message: /^TensorRT was asked for and cannot be used: .*(driver is not installed|no GPU)/,
    });
    t.deepEqual(start(t).gpus(), []);
  });

  test('load: a name loaded again is replaced', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    await engine.load({ ...networks.spec(name(), { gain: -40 }), name: spec.name });
    const image = halves(64, 64);
    await engine.matte(1, image, planFor(spec.name, image));
    t.is(alphaAt(image.data, 64, 4, 4), 0);
    t.is(alphaAt(image.data, 64, 60, 60), 255);
  });

  test('unload: running jobs finish, later ones are ENGINE_MODEL, and a load brings it back', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    const first = halves(64, 32);
    const running = engine.matte(1, first, planFor(spec.name, first));
    const unloaded = engine.unload();
    const image = halves(64, 32);
    await t.throwsAsync(engine.matte(2, image, planFor(spec.name, image)), { code: 'ENGINE_MODEL' });
    t.is((await running).width, 64);
    await unloaded;
    await engine.load(spec);
    t.is((await engine.matte(3, image, planFor(spec.name, image))).width, 64);
    t.true(engine.stats().keptBytes >= 0);
    // A second unload has no effect, and a closed engine has nothing to unload.
    await engine.unload();
    await engine.unload();
    await engine.close(0);
    await t.throwsAsync(engine.unload(), { code: 'ENGINE_CLOSED' });
  });

  test('matte: writes alpha, clears hidden colour, keeps the subject, finds its box', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    const image = halves(300, 200);
    const result = await engine.matte(1, image, planFor(spec.name, image));
    t.deepEqual([result.width, result.height, result.opaque], [300, 200, false]);
    t.deepEqual([...image.data.subarray(0, 4)], [255, 255, 255, 255]);
    t.deepEqual([...image.data.subarray(-4)], [0, 0, 0, 0]);
    t.deepEqual([result.box.left, result.box.top, result.box.height], [0, 0, 200]);
    // The network sees 64 columns: its edge is accurate to about one of them.
    t.true(Math.abs(result.box.width - 150) <= 5, String(result.box.width));
    t.true(Math.abs(result.foregroundPixels - 30_000) <= 200 * 5, String(result.foregroundPixels));
    for (const time of [result.queueMs, result.prepareMs, result.inferMs, result.matteMs]) t.true(time >= 0);
  });

  test('matte: probability and logit outputs, one or two outputs, give the same alpha', async (t) => {
    const engine = start(t);
    const variants = [
      networks.spec(name()),
      networks.spec(name(), { sigmoid: true }, { output: 'probability' }),
      networks.spec(name(), { secondOutput: true }),
      networks.spec(name(), { convolutions: 2 }),
    ];
    const results: Uint8Array[] = [];
    for (const [id, spec] of variants.entries()) {
      await engine.load(spec);
      const image = halves(200, 100);
      await engine.matte(id, image, planFor(spec.name, image));
      results.push(image.data);
    }
    const [first, ...others] = results;
    for (const other of others) {
      t.true(other.every((value, i) => Math.abs(value - (first?.[i] ?? 0)) <= 1));
    }
  });

  test('matte: alpha that is too solid is corrected for networks trained on masks, not for those trained on mattes', async (t) => {
    const engine = start(t);
    // A gray strip, 30 % of white over black, two of the network's columns wide: the network's answer is 0.9.
    const strip = () => {
      const image = halves(64, 64);
      for (let i = 0; i < 64 * 64; i++) {
        if (i % 64 === 32 || i % 64 === 33) image.data.fill(77, i * 4, i * 4 + 3);
      }
      return image;
    };
    const alphas = async (trainedOn: NetworkSpec['trainedOn'], id: number) => {
      const spec = networks.spec(name(), { gain: 12, bias: 6.95 }, trainedOn && { trainedOn });
      await engine.load(spec);
      const image = strip();
      await engine.matte(id, image, planFor(spec.name, image));
      return [32, 33].map((x) => image.data[(30 * 64 + x) * 4 + 3] ?? -1);
    };
    const masks = await alphas('masks', 1);
    const mattes = await alphas('mattes', 2);
    t.deepEqual(await alphas(undefined, 3), masks);
    for (const alpha of masks) t.true(Math.abs(alpha - 77) < 25, `masks: ${masks}`);
    for (const [i, alpha] of mattes.entries())
      t.true(alpha > (masks[i] ?? 255) + 12, `mattes: ${mattes}, masks: ${masks}`);
  });

  test("matte: an intermediate probability becomes an intermediate alpha, multiplied with the image's alpha", async (t) => {
    const wrong: string[] = [];
    const engine = start(t);
    const spec = networks.spec(name(), { gain: 0 });
    await engine.load(spec);
    for (const [before, after] of [
      [255, 128],
      [100, 50],
      [0, 0],
    ] as const) {
      const image = halves(50, 40, before);
      await engine.matte(1, image, planFor(spec.name, image));
      for (let i = 3; i < image.data.length; i += 4) {
        if (Math.abs((image.data[i] ?? 0) - after) > 1) wrong.push(`alpha ${image.data[i]} for ${before}`);
      }
    }
    t.deepEqual(wrong.slice(0, 5), []);
  });

  test("matte: the first network's answer stands beside a second one, which has to be loaded", async (t) => {
    const engine = start(t);
    const first = networks.spec(name(), { gain: 4 });
    const second = networks.spec(name(), { gain: 20, bias: 10, width: 32, height: 32 });
    for (const spec of [first, second]) await engine.load(spec);
    const made = async (others: Partial<MattePlan>) => {
      const image = halves(96, 96);
      const { box } = await engine.matte(1, image, planFor(first.name, image, others));
      return { box, data: image.data };
    };
    t.deepEqual(await made({ second: second.name }), await made({}));
    await t.throwsAsync(made({ second: 'nobody' }), { code: 'ENGINE_MODEL', message: /nobody/ });
  });

  test('matte: hiddenColour keep leaves the colours under alpha 0', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name(), { gain: -40 });
    await engine.load(spec);
    const image = halves(64, 64);
    await engine.matte(1, image, planFor(spec.name, image, { hiddenColour: 'keep' }));
    t.deepEqual([...image.data.subarray(0, 4)], [255, 255, 255, 0]);
  });

  test('matte: alpha is 0 outside the region of interest', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name(), { gain: 0, bias: 40 });
    await engine.load(spec);
    const image = halves(80, 60);
    const roi = { left: 10, top: 20, width: 30, height: 15 };
    const result = await engine.matte(1, image, planFor(spec.name, image, { roi }));
    t.deepEqual(result.box, roi);
    t.is(result.foregroundPixels, 30 * 15);
  });

  test('matte: a mask chooses the subject; what it leaves out is transparent', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    // Two bright bars; the network sees both.
    const image = halves(128, 128);
    for (let y = 0; y < 128; y++)
      for (let x = 0; x < 128; x++) {
        const bright = (x >= 16 && x < 48) || (x >= 80 && x < 112);
        image.data.fill(bright ? 255 : 0, (y * 128 + x) * 4, (y * 128 + x) * 4 + 3);
      }
    const both = { ...image, data: image.data.slice() };
    const found = await engine.matte(1, both, planFor(spec.name, both));
    t.true(Math.abs(found.box.width - 96) <= 4, JSON.stringify(found.box));
    const data = Uint8Array.from({ length: 32 * 32 }, (_, i) => (i % 32 >= 20 && i % 32 < 28 ? 255 : 0));
    const mask = { data, width: 32, height: 32 };
    const { box, opaque, foregroundPixels } = await engine.matte(
      2,
      image,
      planFor(spec.name, image, { mask }),
    );
    t.true(Math.abs(box.left - 80) <= 2 && Math.abs(box.width - 32) <= 4, JSON.stringify(box));
    t.deepEqual([box.top, box.height, opaque], [0, 128, false]);
    t.true(Math.abs(foregroundPixels - 32 * 128) <= 256, String(foregroundPixels));
    t.deepEqual([...image.data.subarray((64 * 128 + 30) * 4, (64 * 128 + 30) * 4 + 4)], [0, 0, 0, 0]);
    t.deepEqual([...image.data.subarray((64 * 128 + 96) * 4, (64 * 128 + 96) * 4 + 4)], [255, 255, 255, 255]);
  });

  test('matte: a mask of another length than its size is a RangeError', (t) => {
    const engine = start(t);
    const image = halves(8, 8);
    const mask = { data: new Uint8Array(15), width: 4, height: 4 };
    t.throws(() => engine.matte(1, image, planFor('any', image, { mask })), { instanceOf: RangeError });
  });

  test('matte: ambiguous pixels far from the subject are removed, in the whole image or in the region', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    const dirty = () => {
      const image = halves(64, 64);
      // One pixel in a corner of the background for which the network's alpha is about 13.
      image.data.fill(118, (5 * 64 + 60) * 4, (5 * 64 + 60) * 4 + 3);
      // And a small confident part, which is negligible beside the half image and the whole subject in the region.
      for (let y = 50; y < 53; y++) image.data.fill(255, (y * 64 + 57) * 4, (y * 64 + 60) * 4);
      return image;
    };
    const clean = halves(64, 64);
    const wanted = await engine.matte(1, clean, planFor(spec.name, clean));
    const whole = dirty();
    const result = await engine.matte(2, whole, planFor(spec.name, whole));
    t.deepEqual(result.box, wanted.box);
    t.deepEqual(digest(whole.data), digest(clean.data));
    const part = dirty();
    const roi = { left: 40, top: 0, width: 24, height: 64 };
    const inRegion = await engine.matte(3, part, planFor(spec.name, part, { roi }));
    t.deepEqual(inRegion.box, { left: 57, top: 50, width: 3, height: 3 });
  });

  test('matte: a network with a free size runs at smaller sizes in any order, and at no unsupported size', async (t) => {
    const engine = start(t, { workers: 2 });
    const free = networks.spec(name(), { free: true });
    const half = networks.spec(name(), { width: 32, height: 48 });
    for (const spec of [free, half]) await engine.load(spec);
    const input = { width: 32, height: 48 };
    const large = halves(64, 64);
    await engine.matte(1, large, planFor(free.name, large));
    const wanted = halves(64, 64);
    await engine.matte(2, wanted, planFor(half.name, wanted));
    const jobs = Array.from({ length: 6 }, (_, i) => {
      const image = halves(64, 64);
      const plan = planFor(free.name, image, i % 2 === 0 ? { input } : {});
      return { image, done: engine.matte(3 + i, image, plan), small: i % 2 === 0 };
    });
    for (const { image, done, small } of jobs) {
      t.is((await done).runs, 1);
      t.is(digest(image.data), digest((small ? wanted : large).data));
    }
    t.not(digest(wanted.data), digest(large.data));
    const image = halves(64, 64);
    for (const [spec, size] of [
      [half, { width: 16, height: 16 }],
      [free, { width: 128, height: 64 }],
    ] as const) {
      await t.throwsAsync(engine.matte(20, image, planFor(spec.name, image, { input: size })), {
        code: 'ENGINE_MODEL',
        message: new RegExp(`cannot run at ${size.width} x ${size.height}`),
      });
    }
    t.deepEqual(image, halves(64, 64));
  });

  test('matte: an ambiguous answer at a smaller size is repeated at the usual size', async (t) => {
    const engine = start(t);
    const doubtful = networks.spec(name(), { free: true, gain: 1 });
    await engine.load(doubtful);
    const usual = halves(64, 64);
    t.is((await engine.matte(1, usual, planFor(doubtful.name, usual))).runs, 1);
    const image = halves(64, 64);
    const input = { width: 32, height: 32 };
    t.is((await engine.matte(2, image, planFor(doubtful.name, image, { input }))).runs, 2);
    t.is(digest(image.data), digest(usual.data));
  });

  test('matte: a smaller plan leaves the reduced result at the front of the same memory', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    const image = halves(400, 300);
    const result = await engine.matte(1, image, planFor(spec.name, { width: 100, height: 75 }));
    t.deepEqual([result.width, result.height], [100, 75]);
    for (const y of [0, 37, 74]) {
      t.is(alphaAt(image.data, 100, 5, y), 255);
      t.is(alphaAt(image.data, 100, 95, y), 0);
    }
  });

  test('matte: does not depend on the number of threads', async (t) => {
    const digests = new Set<string>();
    for (const threads of [1, 2, 3]) {
      const engine = start(t, { workers: threads, pixelThreads: threads });
      const spec = networks.spec(name());
      await engine.load(spec);
      const image = halves(333, 257);
      await engine.matte(1, image, planFor(spec.name, { width: 200, height: 150 }));
      digests.add(digest(image.data.subarray(0, 200 * 150 * 4)));
    }
    t.is(digests.size, 1);
  });

  test('matte: concurrent jobs on shared threads each get their own result', async (t) => {
    const engine = start(t, { workers: 3, intraOpThreads: 2, pixelThreads: 2, queueLimit: 100 });
    const spec = networks.spec(name());
    await engine.load(spec);
    const images = Array.from({ length: 60 }, (_, i) => halves(20 + i, 30 + ((i * 7) % 40)));
    const results = await Promise.all(images.map((p, id) => engine.matte(id, p, planFor(spec.name, p))));
    for (const [i, result] of results.entries()) {
      const image = images[i];
      if (image === undefined) continue;
      t.is(result.width, image.width);
      t.is(alphaAt(image.data, image.width, 0, 0), 255);
      t.is(alphaAt(image.data, image.width, image.width - 1, 0), 0);
    }
    t.like(engine.stats(), { queued: 0, running: 0, done: 61, failed: 0, cancelled: 0 });
  });

  for (const bias of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    for (const output of ['logit', 'probability'] as const) {
      test(`matte: ${bias} as ${output} is ENGINE_MODEL, not an empty or a full image`, async (t) => {
        const engine = start(t);
        const spec = networks.spec(name(), { bias }, { output });
        await engine.load(spec);
        const image = halves(32, 32);
        await t.throwsAsync(engine.matte(1, image, planFor(spec.name, image)), {
          code: 'ENGINE_MODEL',
          message: /not finite numbers/,
        });
      });
    }
  }

  /** White is 0.73 and black 0.27, so that a second network is asked. */
  const doubtful = { gain: 1 };

  test('matte: numbers of a second network that are not finite are ENGINE_MODEL', async (t) => {
    const engine = start(t);
    const first = networks.spec(name(), doubtful);
    await engine.load(first);
    for (const [bias, size] of [
      [Number.NaN, 64],
      [Number.POSITIVE_INFINITY, 32],
    ] as const) {
      const second = networks.spec(name(), { bias, width: size, height: size });
      await engine.load(second);
      const image = halves(32, 32);
      await t.throwsAsync(engine.matte(1, image, planFor(first.name, image, { second: second.name })), {
        code: 'ENGINE_MODEL',
        message: /not finite numbers/,
      });
    }
    const image = halves(32, 32);
    await engine.matte(2, image, planFor(first.name, image));
    t.true((alphaAt(image.data, 32, 0, 0) ?? 0) > 128);
  });

  test('cancel: a job ends long before the run of its second network would', async (t) => {
    const engine = start(t);
    const first = networks.spec(name(), doubtful);
    const second = networks.slow(name(), 60);
    await engine.load(first);
    const { warmUpMs } = await engine.load(second);
    const image = halves(256, 256);
    const job = engine.matte(1, image, planFor(first.name, image, { second: second.name }));
    await until(engine, ({ running }) => running === 1);
    await sleep(20);
    const asked = performance.now();
    t.true(engine.cancel(1));
    await t.throwsAsync(job, { code: 'ENGINE_CANCELLED' });
    t.true(performance.now() - asked < warmUpMs / 2);
  });

  test('matte: the JavaScript thread continues during a run', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name());
    await engine.load(spec);
    const image = halves(256, 256);
    let ticks = 0;
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      ticks++;
    }, 5);
    const { inferMs } = await engine.matte(1, image, planFor(spec.name, image));
    longest = Math.max(longest, performance.now() - last);
    clearInterval(timer);
    t.log(`${ticks} ticks of 5 ms in ${inferMs.toFixed(0)} ms, longest gap ${longest.toFixed(0)} ms`);
    t.true(inferMs > 100, 'the network is too fast to tell');
    // A blocked thread would show no tick and one gap as long as the run.
    t.true(ticks >= inferMs / 25);
    t.true(longest < inferMs / 2);
  });

  test('cancel: a waiting job is rejected at once, its pixels untouched', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 40);
    await engine.load(spec);
    const [first, second] = [halves(256, 256), halves(256, 256)];
    const running = engine.matte(1, first, planFor(spec.name, first));
    const before = digest(second.data);
    const waiting = engine.matte(2, second, planFor(spec.name, second));
    await until(engine, (stats) => stats.running === 1);
    t.is(engine.stats().queued, 1);
    t.true(engine.cancel(2));
    t.is(engine.stats().queued, 0);
    await t.throwsAsync(waiting, { code: 'ENGINE_CANCELLED' });
    t.is(engine.stats().running, 1, 'rejected while the other still ran');
    t.is(digest(second.data), before);
    t.false(engine.cancel(2), 'it is over');
    t.false(engine.cancel(99), 'unknown');
    await running;
    t.false(engine.cancel(1), 'it is over');
    t.like(engine.stats(), { queued: 0, running: 0, done: 2, failed: 0, cancelled: 1 });
  });

  test('cancel: a running job ends long before its run would', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 60);
    const { warmUpMs } = await engine.load(spec);
    const image = halves(256, 256);
    const job = engine.matte(1, image, planFor(spec.name, image));
    await until(engine, (stats) => stats.running === 1);
    await sleep(20);
    const asked = performance.now();
    t.true(engine.cancel(1));
    await t.throwsAsync(job, { code: 'ENGINE_CANCELLED' });
    const took = performance.now() - asked;
    t.log(`cancelled in ${took.toFixed(0)} ms of a ${warmUpMs.toFixed(0)} ms run`);
    t.true(took < warmUpMs / 2);
    // The worker is free again, and the next run is complete.
    await engine.matte(2, image, planFor(spec.name, image));
    t.like(engine.stats(), { queued: 0, running: 0, done: 2, failed: 0, cancelled: 1 });
  });

  test('queue: one more than queueLimit waiting jobs is refused at once', async (t) => {
    const engine = start(t, { queueLimit: 2 });
    const spec = networks.slow(name(), 8);
    await engine.load(spec);
    const jobs = [1, 2, 3].map((id) => {
      const image = halves(256, 256);
      return engine.matte(id, image, planFor(spec.name, image));
    });
    const image = halves(256, 256);
    await t.throwsAsync(engine.matte(4, image, planFor(spec.name, image)), {
      code: 'ENGINE_QUEUE_FULL',
      message: /2 jobs/,
    });
    await Promise.all(jobs);
    await engine.matte(4, image, planFor(spec.name, image));
    t.is(engine.stats().done, 5);
  });

  test('queue: with queueLimit 0 a free thread still takes a job', async (t) => {
    const engine = start(t, { queueLimit: 0 });
    const spec = networks.slow(name(), 4);
    await engine.load(spec);
    const [first, second] = [halves(256, 256), halves(256, 256)];
    const job = engine.matte(1, first, planFor(spec.name, first));
    await t.throwsAsync(engine.matte(2, second, planFor(spec.name, second)), { code: 'ENGINE_QUEUE_FULL' });
    const png = await engine.encodePng(3, second, { channels: 'rgba', effort: 1 });
    t.true(png.length > 0, 'a PNG needs no inference worker');
    await job;
  });

  /** A white square of this alpha in the middle of a canvas 1.5 times as large. */
  const squareOn = (side: number, changes: Partial<ComposePlan> = {}): ComposePlan => ({
    width: side * 1.5,
    height: side * 1.5,
    source: { left: 0, top: 0, width: side / 2, height: side },
    target: { left: side / 2, top: side / 4, width: side / 2, height: side },
    ...changes,
  });
  /** halves() with room after it for that canvas. */
  const roomy = (side: number) => {
    const image = halves(side, side);
    const data = new Uint8Array(side * 1.5 * side * 1.5 * 4).fill(7);
    data.set(image.data);
    return { ...image, data };
  };

  test('compose: crops, places, draws shadow and background in the pixels themselves', async (t) => {
    const engine = start(t);
    const pixels = roomy(40);
    const shadow = { opacity: 0.5, sigma: 2, offsetX: 10, offsetY: 0, fade: 0 };
    const plan = squareOn(40, { colour: [10, 200, 30, 255], shadow });
    const result = await engine.compose(1, pixels, plan);
    t.deepEqual([result.box, result.opaque], [plan.target, true]);
    const at = (x: number, y: number) => [...pixels.data.subarray((y * 60 + x) * 4, (y * 60 + x) * 4 + 4)];
    t.deepEqual(at(30, 30), [255, 255, 255, 255], 'subject');
    t.deepEqual(at(5, 5), [10, 200, 30, 255], 'background');
    t.deepEqual(at(44, 30), [5, 100, 15, 255], 'shadow over background');
  });

  test('compose: reduces the subject and lays it over an image', async (t) => {
    const engine = start(t);
    const pixels = halves(60, 60);
    const background = halves(60, 60, 128);
    const target = { left: 20, top: 10, width: 15, height: 30 };
    const source = { left: 0, top: 0, width: 30, height: 60 };
    const result = await engine.compose(1, pixels, { width: 60, height: 60, source, target, background });
    t.deepEqual([result.box, result.opaque], [target, false]);
    t.is(alphaAt(pixels.data, 60, 25, 20), 255);
    t.is(alphaAt(pixels.data, 60, 50, 50), 128);
    t.deepEqual(background.data, halves(60, 60, 128).data, 'the background is only read');
  });

  test('compose: enlarges a part until it fills the canvas, whatever its size', async (t) => {
    const engine = start(t);
    const pixels = roomy(40);
    const target = { left: 0, top: 0, width: 60, height: 60 };
    const plan = { width: 60, height: 60, source: { left: 18, top: 7, width: 4, height: 1 }, target };
    const result = await engine.compose(1, pixels, plan);
    t.deepEqual([result.box, result.opaque], [target, true]);
    // White, white, black, black, each 15 pixels wide.
    const row = Array.from({ length: 60 }, (_, x) => pixels.data[(59 * 60 + x) * 4] ?? 0);
    t.deepEqual([row.slice(0, 23), row.slice(37)], [Array(23).fill(255), Array(23).fill(0)]);
    const [left = 0, right = 0] = row.slice(29);
    t.true(left > right && Math.abs(left + right - 255) <= 1, `${left} ${right}`);
  });

  test('compose: a cancelled job rejects, and the next one succeeds', async (t) => {
    const engine = start(t, { pixelThreads: 1 });
    // The only pixel thread is busy: the others wait until it is free.
    const noise = { data: randomBytes(2000 * 2000 * 4), width: 2000, height: 2000 };
    const busy = engine.encodePng(1, noise, { channels: 'rgba', effort: 9 });
    const waiting = engine.compose(2, roomy(40), squareOn(40));
    const ended = Promise.all([
      t.throwsAsync(busy, { code: 'ENGINE_CANCELLED' }),
      t.throwsAsync(waiting, { code: 'ENGINE_CANCELLED' }),
    ]);
    t.true(engine.cancel(2));
    t.true(engine.cancel(1));
    await ended;
    await engine.compose(2, roomy(40), squareOn(40));
  });

  test('encodePng: returns a PNG, leaves the pixels, runs beside a network run', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 40);
    await engine.load(spec);
    const busy = halves(256, 256);
    const job = engine.matte(1, busy, planFor(spec.name, busy));
    await until(engine, (stats) => stats.running === 1);
    const image = halves(60, 40);
    const before = digest(image.data);
    const [rgba, alpha] = await Promise.all([
      engine.encodePng(2, image, { channels: 'rgba', effort: 1 }),
      engine.encodePng(3, image, {
        channels: 'alpha',
        effort: 9,
        icc: new Uint8Array(200),
        pixelsPerMetre: [1, 2],
      }),
    ]);
    t.is(engine.stats().running, 1, 'the network still runs');
    t.is(digest(image.data), before);
    for (const [png, colourType] of [
      [rgba, 6],
      [alpha, 0],
    ] as const) {
      t.true(Buffer.isBuffer(png));
      t.is(png.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
      t.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]], [60, 40, 8, colourType]);
      t.is(png.subarray(-8, -4).toString('latin1'), 'IEND');
    }
    t.true(alpha.includes('iCCP') && alpha.includes('pHYs'));
    await job;
  });

  test('encodePng: waiting and running ones can be cancelled', async (t) => {
    const engine = start(t);
    const big = { data: new Uint8Array(4000 * 3000 * 4), width: 4000, height: 3000 };
    for (let i = 0; i < big.data.length; i += 4) {
      new DataView(big.data.buffer).setUint32(i, Math.imul(i, 2654435761));
    }
    const running = engine.encodePng(1, big, { channels: 'rgba', effort: 9 });
    const waiting = engine.encodePng(2, big, { channels: 'rgba', effort: 9 });
    await until(engine, (stats) => stats.running === 1);
    t.true(engine.cancel(2));
    t.true(engine.cancel(1));
    await t.throwsAsync(waiting, { code: 'ENGINE_CANCELLED' });
    await t.throwsAsync(running, { code: 'ENGINE_CANCELLED' });
    t.like(engine.stats(), { queued: 0, running: 0, done: 0, failed: 0, cancelled: 2 });
  });

  test('close: lets running and waiting jobs finish, refuses new ones', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 6);
    await engine.load(spec);
    const images = [1, 2, 3].map(() => halves(256, 256));
    const jobs = images.map((image, id) => engine.matte(id, image, planFor(spec.name, image)));
    const closed = engine.close(60_000);
    const late = halves(8, 8);
    await t.throwsAsync(engine.encodePng(9, late, { channels: 'rgba', effort: 1 }), {
      code: 'ENGINE_CLOSED',
    });
    const results = await Promise.all(jobs);
    t.true(results.every((result) => result.width === 256));
    await closed;
    await t.throwsAsync(engine.load(spec), { code: 'ENGINE_CLOSED' });
    await engine.close(0);
    t.is(engine.stats().done, 4);
  });

  test('close: cancels jobs that exceed the grace period, and a second call can shorten it', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 60);
    const { warmUpMs } = await engine.load(spec);
    const images = [halves(256, 256), halves(256, 256)];
    const jobs = images.map((image, id) => engine.matte(id, image, planFor(spec.name, image)));
    await until(engine, (stats) => stats.running === 1);
    const asked = performance.now();
    const patient = engine.close(600_000);
    const impatient = engine.close(10);
    for (const job of jobs) await t.throwsAsync(job, { code: 'ENGINE_CLOSED' });
    await Promise.all([patient, impatient]);
    t.true(performance.now() - asked < warmUpMs);
    t.like(engine.stats(), { queued: 0, running: 0, done: 1, failed: 0, cancelled: 2 });
  });

  test('two concurrent engines are independent', async (t) => {
    const [a, b] = [start(t), start(t, { workers: 2, intraOpThreads: 2 })];
    await Promise.all([
      a.load(networks.spec('same')),
      b.load({ ...networks.spec(name(), { gain: -40 }), name: 'same' }),
    ]);
    const [left, right] = [halves(64, 64), halves(64, 64)];
    await Promise.all([a.matte(1, left, planFor('same', left)), b.matte(1, right, planFor('same', right))]);
    t.is(alphaAt(left.data, 64, 0, 0), 255);
    t.is(alphaAt(right.data, 64, 0, 0), 0);
    await a.close(0);
    await b.matte(1, right, planFor('same', right));
    t.is(b.stats().done, 3);
  });

  test('misuse throws at once: engine options', (t) => {
    const native = load();
    const wrong: [object, ErrorConstructor, RegExp][] = [
      [{ workers: 0 }, RangeError, /Expected an integer from 1 to 1024 for workers but received 0\./],
      [{ workers: 1.5 }, RangeError, /workers but received 1\.5/],
      [{ workers: Number.NaN }, RangeError, /workers but received NaN/],
      [{ intraOpThreads: '2' }, TypeError, /Expected a number for intraOpThreads but received '2'\./],
      [{ pixelThreads: 0 }, RangeError, /pixelThreads/],
      [{ queueLimit: -1 }, RangeError, /queueLimit/],
      [{ idleReleaseMs: -1 }, RangeError, /idleReleaseMs/],
      [{ maxBatch: 0 }, RangeError, /from 1 to 64 for maxBatch/],
      [{ batchDelayMs: 1001 }, RangeError, /batchDelayMs/],
      [{ deviceMemoryBytes: -1 }, RangeError, /deviceMemoryBytes/],
      [{ deviceIds: undefined }, TypeError, /an array of numbers for deviceIds but received undefined/],
      [{ deviceIds: [] }, RangeError, /at least one number for deviceIds/],
      [{ deviceIds: [0, 1, 0] }, RangeError, /distinct numbers for deviceIds but received 0/],
      [{ deviceIds: [0, -1] }, RangeError, /an integer from 0 to 1023 for deviceIds but received -1/],
      [
        { provider: 'gpu' },
        RangeError,
        /one of 'cpu' 'cuda' 'tensorrt' 'tensorrt-rtx' 'webgpu' for provider but received 'gpu'/,
      ],
      [{ provider: 3 }, TypeError, /provider/],
      [{ runtimePath: '' }, RangeError, /runtimePath/],
      [{ runtimePath: null }, TypeError, /runtimePath but received null/],
    ];
    for (const [change, instanceOf, message] of wrong) {
      t.throws(() => new native.Engine({ ...engineOptions(), ...change }), { instanceOf, message });
    }
    t.throws(() => Reflect.construct(native.Engine, []), { instanceOf: TypeError });
    const engine = new native.Engine(engineOptions());
    t.throws(() => engine.stats.call({} as NativeEngine), undefined, 'called on something else');
  });

  test('misuse throws at once: specs, pixels, plans, ids', async (t) => {
    const engine = start(t);
    const spec = networks.spec(name());
    await engine.load(spec);
    const image = halves(20, 10);
    const plan = planFor(spec.name, image);
    const box = { left: 0, top: 0, width: 20, height: 10 };
    const placed: ComposePlan = { width: 20, height: 10, source: box, target: box };
    const call =
      (method: 'load' | 'matte' | 'compose' | 'encodePng' | 'cancel' | 'close', ...args: unknown[]) =>
      () =>
        Reflect.apply(Reflect.get(engine, method) as () => unknown, engine, args);
    const wrong: [() => unknown, ErrorConstructor, RegExp][] = [
      [call('load'), TypeError, /an object for spec but received undefined/],
      [call('load', { ...spec, name: 7 }), TypeError, /a string for name/],
      [call('load', { ...spec, width: 0 }), RangeError, /width/],
      [call('load', { ...spec, mean: [1, 2] }), TypeError, /three numbers for mean/],
      [call('load', { ...spec, std: [1, 0, 1] }), RangeError, /above 0 for std/],
      [call('load', { ...spec, mean: [1, Number.NaN, 1] }), RangeError, /finite number for mean/],
      [call('load', { ...spec, output: 'alpha' }), RangeError, /output/],
      [call('matte', '1', image, plan), TypeError, /id/],
      [call('matte', -1, image, plan), RangeError, /id/],
      [call('matte', 2 ** 53, image, plan), RangeError, /id/],
      [call('matte', 1, null, plan), TypeError, /pixels/],
      [call('matte', 1, { ...image, data: [...image.data] }, plan), TypeError, /a Uint8Array for data/],
      [call('matte', 1, { ...image, data: new Uint16Array(800) }, plan), TypeError, /a Uint8Array for data/],
      [
        call('matte', 1, { ...image, data: new Uint8Array(799) }, plan),
        RangeError,
        /800 \(width \* height \* 4\).* 799/,
      ],
      [call('matte', 1, { ...image, width: 65536 }, plan), RangeError, /width/],
      [call('matte', 1, { ...image, width: 65535, height: 65535 }, plan), RangeError, /width \* height/],
      [call('matte', 1, image, { ...plan, width: 21 }), RangeError, /from 1 to 20 for width/],
      [call('matte', 1, image, { ...plan, hiddenColour: 'gone' }), RangeError, /hiddenColour/],
      [
        call('matte', 1, image, { ...plan, roi: { left: 15, top: 0, width: 6, height: 1 } }),
        RangeError,
        /from 1 to 5 for width/,
      ],
      [
        call('matte', 1, image, { ...plan, roi: { left: 0, top: 0, width: 0, height: 1 } }),
        RangeError,
        /width/,
      ],
      [call('compose', 1, image, null), TypeError, /plan/],
      [call('compose', 1, image, squareOn(20)), RangeError, /at least 3600 \(the canvas\)/],
      [
        call('compose', 1, { ...image, data: new Uint8Array(799) }, squareOn(20)),
        RangeError,
        /800 \(width \* height \* 4\) or more .* 799/,
      ],
      [
        call('compose', 1, image, { ...placed, source: { ...box, width: 21 } }),
        RangeError,
        /from 1 to 20 for width/,
      ],
      [
        call('compose', 1, image, { ...placed, target: { ...box, top: 10 } }),
        RangeError,
        /from 0 to 9 for top/,
      ],
      [call('compose', 1, image, { ...placed, colour: [1, 2, 3] }), TypeError, /four numbers for colour/],
      [
        call('compose', 1, image, { ...placed, colour: [1, 2, 3, 256] }),
        RangeError,
        /from 0 to 255 for colour/,
      ],
      [call('compose', 1, image, { ...placed, background: halves(19, 10) }), RangeError, /canvas's size/],
      [call('compose', 1, image, { ...placed, background: image }), RangeError, /belong to the job 1/],
      [
        call('compose', 1, image, {
          ...placed,
          shadow: { opacity: 0.5, sigma: 0, offsetX: 0, offsetY: 0, fade: 0 },
        }),
        RangeError,
        /from 0.1 to 4096 for sigma/,
      ],
      [call('encodePng', 1, image, { channels: 'rgb', effort: 1 }), RangeError, /channels/],
      [call('encodePng', 1, image, { channels: 'rgba', effort: 0 }), RangeError, /from 1 to 9 for effort/],
      [call('encodePng', 1, image, { channels: 'rgba', effort: 1, icc: 'x' }), TypeError, /icc/],
      [
        call('encodePng', 1, image, { channels: 'rgba', effort: 1, pixelsPerMetre: [1] }),
        TypeError,
        /pixelsPerMetre/,
      ],
      [call('cancel'), TypeError, /id/],
      [call('close', -1), RangeError, /graceMs/],
      [call('close', Number.POSITIVE_INFINITY), RangeError, /graceMs/],
    ];
    for (const [misuse, instanceOf, message] of wrong) t.throws(misuse, { instanceOf, message });
    t.is(engine.stats().done, 1, 'nothing was started');
    await engine.matte(1, image, plan);
  });

  test('misuse throws at once: an id in use, pixels that belong to a job', async (t) => {
    const engine = start(t);
    const spec = networks.slow(name(), 6);
    await engine.load(spec);
    const image = halves(256, 256);
    const job = engine.matte(1, image, planFor(spec.name, image));
    const other = halves(16, 16);
    t.throws(() => engine.matte(1, other, planFor(spec.name, other)), {
      instanceOf: RangeError,
      message: /id 1 is in use/,
    });
    const part = { data: image.data.subarray(256 * 4, 256 * 8), width: 256, height: 1 };
    for (const pixels of [image, part]) {
      t.throws(() => engine.matte(2, pixels, planFor(spec.name, pixels)), {
        instanceOf: RangeError,
        message: /belong to the job 1/,
      });
      t.throws(() => engine.encodePng(2, pixels, { channels: 'rgba', effort: 1 }), {
        instanceOf: RangeError,
      });
    }
    await job;
    await engine.encodePng(1, image, { channels: 'rgba', effort: 1 });
  });
}
