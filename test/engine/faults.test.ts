import { createRequire } from 'node:module';
import test, { type ExecutionContext } from 'ava';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { EngineError, type NativeModule } from '../../src/engine/types.ts';
import { engineOptions, halves, Networks, planFor } from '../fixtures/engineSetup.ts';
import { head } from '../fixtures/subjectHead.ts';

/** The addon as it ships, with allocations and threads that fail on command (test/faults). */
interface FaultyModule extends NativeModule {
  /** The allocation or thread number `which` from now on fails, alone or with all later ones; on any thread. */
  fault(what: 'allocation' | 'thread', which: number, how: 'one' | 'rest'): void;
  /** Ends the failures; returns the number of allocations since. */
  noFault(): number;
}

const native: FaultyModule = createRequire(import.meta.url)('../../../native/Release/cutout_faults.node');

const networks = new Networks();
test.after.always(() => networks.remove());

const network = networks.spec('white');
/** Of another size, and of the contrary opinion in every region. */
const second = networks.spec('black', { gain: -60, width: 96, height: 96 });
const detector = networks.spec(
  'detector',
  { gain: 0.1, bias: -12.75, sigmoid: true, secondOutput: true },
  { mean: [0, 0, 0], std: [1, 1, 1], output: 'probability' },
);

const threads = { workers: 2, pixelThreads: 3 };

async function start(t: ExecutionContext): Promise<Engine> {
  const engine = createEngine(native, engineOptions(threads));
  t.teardown(() => engine.close(0));
  await engine.load(network);
  await engine.load(second);
  await engine.loadSubjectTypes({ detector, head: head() });
  return engine;
}

const image = () => halves(60, 40);

/** Result of a job of each kind, as text. */
const jobs: Readonly<Record<string, (engine: Engine) => Promise<string>>> = {
  async matte(engine) {
    const pixels = image();
    const { box } = await engine.matte(pixels, planFor('white', pixels));
    return JSON.stringify([box, Buffer.from(pixels.data).toString('base64')]);
  },
  async 'matte of two networks'(engine) {
    const pixels = image();
    const { box } = await engine.matte(pixels, planFor('white', pixels, { second: 'black' }));
    return JSON.stringify([box, Buffer.from(pixels.data).toString('base64')]);
  },
  async compose(engine) {
    const pixels = image();
    const { box } = await engine.compose(pixels, {
      width: 60,
      height: 40,
      source: { left: 0, top: 0, width: 30, height: 20 },
      target: { left: 5, top: 5, width: 50, height: 30 },
      colour: [1, 2, 3, 255],
      shadow: { opacity: 0.5, sigma: 2, offsetX: 1, offsetY: 1, fade: 0 },
    });
    return JSON.stringify([box, Buffer.from(pixels.data).toString('base64')]);
  },
  async encodePng(engine) {
    const png = await engine.encodePng(image(), { channels: 'rgba', effort: 1 });
    return png.toString('base64');
  },
  async 'matte with its type'(engine) {
    const pixels = image();
    const { subject } = await engine.matte(pixels, { ...planFor('white', pixels), subject: true });
    return JSON.stringify(subject);
  },
  async load(engine) {
    const { name } = await engine.load(network);
    return name;
  },
  async loadSubjectTypes(engine) {
    const { features } = await engine.loadSubjectTypes({ detector, head: head() });
    return JSON.stringify(features);
  },
};

for (const [name, job] of Object.entries(jobs)) {
  test.serial(
    `${name}: whichever allocation fails, it returns its result or ENGINE_OUT_OF_MEMORY`,
    async (t) => {
      const engine = await start(t);
      const wanted = await job(engine);
      let refused = 0;
      for (const how of ['one', 'rest'] as const) {
        for (let which = 0; ; which++) {
          native.fault('allocation', which, how);
          const outcome = await job(engine).catch((error: unknown) => error);
          const allocations = native.noFault();
          if (outcome instanceof EngineError) {
            refused++;
            if (outcome.code !== 'ENGINE_OUT_OF_MEMORY')
              t.fail(`${how} ${which}: ${outcome.code} ${outcome.message}`);
          } else if (outcome !== wanted) {
            t.fail(`${how} ${which}: ${outcome instanceof Error ? outcome.stack : 'another result'}`);
          }
          if (allocations <= which) break;
        }
      }
      t.true(refused > 0);
      t.is(await job(engine), wanted);
      const { queued, running } = engine.stats();
      t.deepEqual({ queued, running }, { queued: 0, running: 0 });
    },
  );
}

test.serial('an engine whose threads do not all start is not created, and the next one is', async (t) => {
  for (let which = 0; which < threads.workers + threads.pixelThreads; which++) {
    for (const how of ['one', 'rest'] as const) {
      native.fault('thread', which, how);
      const error = t.throws(() => createEngine(native, engineOptions(threads)), { instanceOf: EngineError });
      native.noFault();
      t.is(error.code, 'ENGINE_RUNTIME');
      t.regex(error.message, /2 workers and 3 pixel threads.*Resource temporarily unavailable/);
    }
  }
  const engine = await start(t);
  t.truthy(await jobs['matte']?.(engine));
});

test.serial('an engine is closed without a thread to wait on: running jobs are stopped', async (t) => {
  const engine = createEngine(native, engineOptions());
  await engine.load(networks.slow('slow'));
  const pixels = image();
  const job = engine.matte(pixels, planFor('slow', pixels));
  native.fault('thread', 0, 'rest');
  const closed = engine.close(60_000);
  native.noFault();
  await t.throwsAsync(job, { code: 'ENGINE_CLOSED' });
  await closed;
});

test.serial('an engine without memory to start is not created', (t) => {
  let refused = 0;
  for (let which = 0; ; which++) {
    native.fault('allocation', which, 'one');
    let engine: Engine | undefined;
    try {
      engine = createEngine(native, engineOptions(threads));
    } catch (error) {
      refused++;
      // Node-API's wrapper allocates the object itself, and passes on the exception.
      const own = error instanceof EngineError && error.code === 'ENGINE_OUT_OF_MEMORY';
      if (!own && !(error instanceof Error && error.message === 'std::bad_alloc')) throw error;
    }
    const allocations = native.noFault();
    engine?.close(0).catch(t.fail);
    if (allocations <= which) break;
  }
  t.true(refused > 0);
});
