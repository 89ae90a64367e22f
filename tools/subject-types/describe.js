// Features as the server computes them, by the test addon (npm run setup -- --tests); mattes by the built addon.
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const built = (file) => new URL(`../../build/ts/src/${file}`, import.meta.url);
const { defaultRuntimePath, loadAddon } = await import(built('engine/addon.js'));
const { createEngine } = await import(built('engine/engine.js'));
const { networkOutput } = await import(built('engine/networkOutput.js'));
const { ensureNetwork } = await import(built('models/ensure.js'));
const { formFor, operatorsOf } = await import(built('models/precision.js'));
const { SUBJECT_DETECTOR } = await import(built('models/locate.js'));

const root = fileURLToPath(new URL('../../', import.meta.url));
const modelsDir = process.env.CUTOUT_MODELS_DIR ?? path.join(root, 'data', 'models');

/** Side of the network's input: mattes only weight the features, for which a quarter of the usual pixels is enough. */
export const MATTE_SIDE = 512;

export async function describer(threads = 1) {
  const observer = { notice: (text) => console.log(text), progress: () => {} };
  const native = loadAddon();
  const engine = createEngine(native, {
    runtimePath: defaultRuntimePath(),
    provider: 'cpu',
    deviceIds: [0],
    workers: 1,
    intraOpThreads: threads,
    pixelThreads: threads,
    queueLimit: 100,
    idleReleaseMs: 0,
  });
  const place = { modelsDir, pull: false, device: 'cpu', observer };
  // In 8 bits, by Cutout's operators where there are any for this processor.
  const operators = operatorsOf('int8', native.versions().operators)[0];
  const form = formFor({ precision: 'int8', operators });
  const network = await ensureNetwork('isnet', { ...place, form });
  await engine.load({ ...network, operators, width: MATTE_SIDE, height: MATTE_SIDE });
  const detector = await ensureNetwork(SUBJECT_DETECTOR, { ...place, role: 'detector' });
  const addon = createRequire(import.meta.url)('../../build/native/Release/cutout_test.node');
  const opened = addon.openDetector(defaultRuntimePath(), detector, threads);
  return {
    /** The network's alpha, MATTE_SIDE x MATTE_SIDE bytes; `image` must have that size, and is overwritten. */
    matte: async (image) => {
      const { values } = await networkOutput(engine, 'isnet', image);
      return Uint8Array.from(values, (value) => Math.round(value * 255));
    },
    /** The head's features (native/classify/features.h). */
    describe: (image, matte) =>
      addon.subjectFeatures(opened, { ...image, stride: 4 * image.width }, matte, threads),
    close: () => engine.close(0),
  };
}
