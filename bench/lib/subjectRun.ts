// Classification of a subject in a separate process: node subjectRun.js MODELS NETWORK THREADS ROUNDS
// Prints one JSON line: milliseconds and processor milliseconds of every description of an image of 1024 x 1024, and of
// every matte of it without and with classification, alternately.
import { createRequire } from 'node:module';
import { defaultRuntimePath } from '../../src/engine/addon.ts';
import { ensureNetwork } from '../../src/models/ensure.ts';
import { SUBJECT_DETECTOR } from '../../src/models/locate.ts';
import { readSubjectHead } from '../../src/models/subjectHead.ts';
import { loadIsnet, openEngine } from './engine.ts';
import { testAddon } from './paths.ts';

const [modelsDir = '', network = '', threads, rounds] = process.argv.slice(2);
const SIDE = 1024;
const size = { width: SIDE, height: SIDE };

/** A disc before waves, with noise. */
const image = new Uint8Array(SIDE * SIDE * 4);
const alpha = new Float32Array(SIDE * SIDE);
for (let at = 0; at < alpha.length; at++) {
  const [x, y] = [at % SIDE, Math.floor(at / SIDE)];
  const inside = Math.hypot(x - 512, y - 480) < 300;
  const noise = (Math.imul(at, 2654435761) >>> 27) - 16;
  const wave = 128 + 60 * Math.sin(x / 31) * Math.cos(y / 17);
  alpha[at] = inside ? 1 : 0;
  image.set(inside ? [200 + noise, 90 + y / 8, 60] : [wave + noise, wave, 150], at * 4);
  image[at * 4 + 3] = 255;
}

const engine = openEngine(Number(threads));
const observer = { notice: console.error, progress: () => {} };
const detector = await ensureNetwork(SUBJECT_DETECTOR, {
  ...{ modelsDir, pull: false, device: 'cpu', role: 'detector', observer },
});
await engine.loadSubjectTypes({ detector, head: await readSubjectHead() });
await loadIsnet(engine, network);

/** The test addon, which has the detector and its features by themselves (test/native/subject.cc). */
const addon = createRequire(import.meta.url)(testAddon) as {
  openDetector(runtimePath: string, spec: typeof detector, threads: number): object;
  subjectFeatures(detector: object, image: object, matte: object, threads: number): Float32Array;
};
const opened = addon.openDetector(defaultRuntimePath(), detector, Number(threads));

interface Times {
  readonly ms: number[];
  readonly processor: number[];
}

async function timed(times: Times, work: () => Promise<unknown>): Promise<void> {
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  await work();
  times.ms.push(performance.now() - start);
  const { user, system } = process.cpuUsage(cpu);
  times.processor.push((user + system) / 1000);
}

const described: Times = { ms: [], processor: [] };
const plain: Times = { ms: [], processor: [] };
const classified: Times = { ms: [], processor: [] };
const matte = (subject: boolean) =>
  engine.matte(
    { data: image.slice(), ...size },
    { network: 'isnet', hiddenColour: 'clear', subject, ...size },
  );
await matte(true);
for (let round = 0; round < Number(rounds); round++) {
  // Many of the short ones, whose cost shows only in a quiet moment.
  for (let again = 0; again < 5; again++)
    await timed(described, async () =>
      addon.subjectFeatures(
        opened,
        { data: image, ...size, stride: SIDE * 4 },
        { data: alpha, ...size },
        Number(threads),
      ),
    );
  await timed(plain, () => matte(false));
  await timed(classified, () => matte(true));
}
await engine.close(0);
console.log(JSON.stringify({ described, plain, classified }));
