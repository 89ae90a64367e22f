import test from 'ava';
import sharp from 'sharp';
import { unless } from '../fixtures/leftOut.ts';
import { drawScene } from '../fixtures/scene.ts';
import { alphaOf, correlation, cutOut, networkMissing, startReal } from './real.ts';

const run = unless(networkMissing, test.serial);

const SIDE = { width: 1200, height: 900 };

run('the default network cuts out drawn objects over HTTP', async (t) => {
  t.timeout(300_000);
  const server = await startReal(t);
  for (const [name, atLeast] of [
    ['disc', 0.97],
    ['polygon', 0.97],
    ['leaf', 0.9],
    ['hair', 0.9],
  ] as const) {
    const { composite, alpha } = drawScene(name, SIDE.width, SIDE.height, 7);
    const photo = await sharp(composite, { raw: { ...SIDE, channels: 4 } })
      .removeAlpha()
      .png()
      .toBuffer();
    const answer = await cutOut(server, photo, { size: 'full', format: 'png' });
    t.is(answer.status, 200, name);
    const file = Buffer.from(await answer.arrayBuffer());
    const found = await alphaOf(file);
    const score = correlation(found.data, alpha);
    t.log(`${name}: correlation ${score.toFixed(3)} with the exact alpha`);
    t.true(score >= atLeast, `${name}: ${score}`);

    const result = await sharp(file).raw().toBuffer();
    let [hidden, changed, opaque, left, top, right, bottom] = [0, 0, 0, SIDE.width, SIDE.height, -1, -1];
    for (let i = 0; i < alpha.length; i++) {
      const at = i * 4;
      const value = result[at + 3];
      if (value === 0) hidden += result.readUIntBE(at, 3) === 0 ? 0 : 1;
      if (value === 255) {
        opaque += 1;
        changed += result.compare(composite, at, at + 3, at, at + 3) === 0 ? 0 : 1;
      }
      if (value !== 0) {
        const [x, y] = [i % SIDE.width, Math.floor(i / SIDE.width)];
        [left, right, top, bottom] = [
          Math.min(left, x),
          Math.max(right, x),
          Math.min(top, y),
          Math.max(bottom, y),
        ];
      }
    }
    t.is(hidden, 0, `${name}: RGB is 0 where alpha is 0`);
    t.is(changed, 0, `${name}: opaque pixels are those of the photo`);
    t.true(opaque > 1000);
    const header = (side: string) => Number(answer.headers.get(`X-Foreground-${side}`));
    t.deepEqual(
      [header('Left'), header('Top'), header('Width'), header('Height')],
      [left, top, right - left + 1, bottom - top + 1],
      `${name}: the box is that of the alpha`,
    );
  }
});

run('a preview is a small image of the same subject', async (t) => {
  const server = await startReal(t);
  const { composite, alpha } = drawScene('hair', 2400, 1800, 3);
  const raw = { width: 2400, height: 1800 };
  const photo = await sharp(composite, { raw: { ...raw, channels: 4 } })
    .removeAlpha()
    .jpeg({ quality: 95 })
    .toBuffer();
  const answer = await cutOut(server, photo);
  t.is(answer.status, 200);
  t.deepEqual([answer.headers.get('X-Width'), answer.headers.get('X-Height')], ['577', '433']);
  const found = await alphaOf(Buffer.from(await answer.arrayBuffer()));
  const small = await sharp(alpha, { raw: { ...raw, channels: 1 } })
    .resize(577, 433, { fit: 'fill' })
    .toColourspace('b-w')
    .raw()
    .toBuffer();
  const score = correlation(found.data, small);
  t.log(`correlation ${score.toFixed(3)} with the exact alpha`);
  t.true(score >= 0.9);
});
