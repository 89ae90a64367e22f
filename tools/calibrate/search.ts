// node build/ts/tools/calibrate/search.js [--network NAME] [--data FOLDER] [--models FOLDER] [--statistics FOLDER]
// Searches for better quantiles than those of ranges.ts: coordinate descent over the stages. Each candidate quantises the
// network and runs it over SEARCH_PHOTOS, at half its side where that is 320 or more (a quarter of the time); it is
// accepted if the mattes are closer to those in floats. About ten seconds of processor time for each of some fifty
// candidates; prints each of them, and the best at the end. A development tool, as main.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import ort from 'onnxruntime-node';
import { openCalibration } from './calibration.ts';
import { inputOf } from './image.ts';
import { STAGES } from './layers.ts';
import { readNetwork } from './network.ts';
import { SEARCH_PHOTOS } from './photos.ts';
import { type Quantiles, USUAL_QUANTILE } from './ranges.ts';

/** Deepest first: it has the greatest effect. */
const ORDER = [...STAGES].sort((a, b) => depth(b) - depth(a));
const TRIED = [0.25, USUAL_QUANTILE, 0.6, 0.8, 0.9, 1];
/** A candidate is accepted if the error falls below this share of the best one: smaller gains are noise. */
const WORTH = 0.99;

function depth(stage: string): number {
  return Number(/\d/.exec(stage)?.[0] ?? 0) - (stage.endsWith('d') ? 0.5 : 0);
}

const { source, manifest, data, quantiles: known, tableOf } = await openCalibration();
const { features } = manifest;
const side = Math.max(320, manifest.input.width / 2);
const input = { ...manifest.input, width: side, height: side };
const work = mkdtempSync(path.join(tmpdir(), 'cutout-search-'));

async function mattesOf(table?: ReturnType<typeof tableOf>): Promise<Float32Array[]> {
  const file = path.join(work, 'network.onnx');
  readNetwork(source, features).save(file, table);
  const session = await ort.InferenceSession.create(file);
  const [from = ''] = session.inputNames;
  const [output = ''] = session.outputNames;
  const mattes: Float32Array[] = [];
  for (const photo of SEARCH_PHOTOS) {
    const values = await inputOf(path.join(data, photo), input);
    const tensor = new ort.Tensor('float32', values, [1, 3, side, side]);
    const found = (await session.run({ [from]: tensor }, [output]))[output]?.data;
    if (!(found instanceof Float32Array)) throw new Error('the matte is not of floats');
    mattes.push(found);
  }
  await session.release();
  return mattes;
}

/** Mean difference of mattes; photos are averaged by its square root, so that one bad photo does not dominate. */
function errorOf(mattes: readonly Float32Array[], wanted: readonly Float32Array[]): number {
  const roots = mattes.map((matte, at) => {
    const floats = wanted[at];
    if (!floats) throw new Error('no matte in floats');
    return Math.sqrt(
      matte.reduce((sum, alpha, i) => sum + Math.abs(alpha - (floats[i] ?? 0)), 0) / matte.length,
    );
  });
  return (roots.reduce((a, b) => a + b, 0) / roots.length) ** 2;
}

try {
  const wanted = await mattesOf();
  const score = async (quantiles: Quantiles) => {
    const error = errorOf(await mattesOf(tableOf(quantiles)), wanted);
    console.log(error.toFixed(5), JSON.stringify(quantiles));
    return error;
  };
  let best: Quantiles = known;
  let least = await score(best);
  for (const stage of ORDER) {
    const before = best;
    for (const quantile of TRIED) {
      if (quantile === (before[stage] ?? USUAL_QUANTILE)) continue;
      const tried = { ...before, [stage]: quantile };
      const error = await score(tried);
      if (error > least * WORTH) continue;
      least = error;
      best = tried;
    }
  }
  console.log('best', least.toFixed(5), JSON.stringify(best));
} finally {
  rmSync(work, { recursive: true });
}
