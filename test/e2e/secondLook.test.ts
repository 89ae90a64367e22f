import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'ava';
import { root, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';
import { alphaOf, cutOut, models, networkMissing, realSettings } from './real.ts';

const data = path.join(root, '..', 'shared', 'data', 'coco_permissive');
const photo = path.join(data, 'images', '000000000072.jpg');

const missing =
  networkMissing ??
  (existsSync(path.join(models, 'u2net', 'source.onnx'))
    ? existsSync(photo)
      ? undefined
      : `the photo ${photo} is not there`
    : `the network u2net is not in ${models}`);

unless(missing, test.serial)('a subject that the first network half believes comes back whole', async (t) => {
  t.timeout(300_000);
  const mask = path.join(data, 'masks', '000000000072.png');
  const found: Record<string, { readonly overlap: number; readonly score: number }> = {};
  for (const second of ['off', 'auto']) {
    const server = await startServing(t, {
      ...realSettings,
      CUTOUT_DATA_DIR: temporaryFolder(t),
      CUTOUT_SECOND_MODEL: second,
    });
    const answer = await cutOut(server, await readFile(photo), { size: 'full', format: 'png' });
    t.is(answer.status, 200);
    const score = Number(answer.headers.get('x-uncertainty-score'));
    const alpha = await alphaOf(Buffer.from(await answer.arrayBuffer()));
    const truth = await alphaOf(mask, alpha);
    let [both, either] = [0, 0];
    for (const [i, value] of alpha.data.entries()) {
      both += Math.min(value, truth.data[i] ?? 0);
      either += Math.max(value, truth.data[i] ?? 0);
    }
    found[second] = { overlap: both / either, score };
  }
  t.log(JSON.stringify(found));
  const { off, auto } = found;
  t.true(off !== undefined && off.overlap < 0.55 && off.score > 0.98);
  t.true(auto !== undefined && auto.overlap > 0.75 && auto.score < 0.95);
});
