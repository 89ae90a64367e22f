// Features as the server has them: the built addon with the detector and no head.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const built = (file) => new URL(`../../../build/ts/src/${file}`, import.meta.url);
const { defaultRuntimePath, loadAddon } = await import(built('engine/addon.js'));
const { createEngine } = await import(built('engine/engine.js'));
const { ensureNetwork } = await import(built('models/ensure.js'));
const { SUBJECT_DETECTOR } = await import(built('models/locate.js'));

const root = fileURLToPath(new URL('../../../', import.meta.url));
const modelsDir = process.env.CUTOUT_MODELS_DIR ?? path.join(root, 'data', 'models');

export async function describer(threads = 1) {
  const observer = { notice: (text) => console.log(text), progress: () => {} };
  const engine = createEngine(loadAddon(), {
    runtimePath: defaultRuntimePath(),
    provider: 'cpu',
    deviceId: 0,
    workers: 1,
    intraOpThreads: threads,
    pixelThreads: threads,
    queueLimit: 100,
    idleReleaseMs: 0,
  });
  const detector = await ensureNetwork(SUBJECT_DETECTOR, {
    modelsDir,
    pull: false,
    device: 'cpu',
    role: 'detector',
    observer,
  });
  const info = await engine.loadSubjectTypes({ detector });
  return {
    features: info.features,
    describe: async (picture, matte) => (await engine.describe(picture, { matte })).features,
    close: () => engine.close(0),
  };
}
