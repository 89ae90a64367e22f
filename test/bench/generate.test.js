import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import sharp from 'sharp';
import { Band, defocused, sharp as edge } from '../../bench/quality/generate/canvas.js';
import { composeImage, cutoutsIn } from '../../bench/quality/generate/cutouts.js';
import { drawImage, hashOf, KINDS, sizeOf } from '../../bench/quality/generate/index.js';
import {
  disc,
  ellipse,
  leaf,
  outline,
  roundBox,
  union,
  without,
} from '../../bench/quality/generate/shapes.js';
import { strandOf } from '../../bench/quality/generate/strands.js';
import { GROUNDS, texture } from '../../bench/quality/generate/textures.js';
import { inRoot } from '../../scripts/setup/paths.js';

const SIZE = { width: 320, height: 240 };

/** Largest distance of the composite from alpha · foreground + (1 − alpha) · background, in 1/255. */
function worstError({ alpha, foreground, background, composite }) {
  let worst = 0;
  for (let i = 0; i < composite.length; i++) {
    const a = alpha[Math.trunc(i / 3)] / 255;
    worst = Math.max(worst, Math.abs(composite[i] - (a * foreground[i] + (1 - a) * background[i])));
  }
  return worst;
}

for (const kind of KINDS) {
  const image = drawImage({ kind, ...SIZE, seed: 5 });

  test(`${kind}: the image is composed of alpha, foreground and background within rounding`, (t) => {
    t.true(worstError(image) <= 0.5);
    const { alpha, foreground, composite } = image;
    let wrong = 0;
    alpha.forEach((a, i) => {
      for (let c = i * 3; c < i * 3 + 3; c++) {
        if (a === 255 && composite[c] !== foreground[c]) wrong++;
        if (a === 0 && foreground[c] !== 0) wrong++;
      }
    });
    t.is(wrong, 0);
  });

  test(`${kind}: equal arguments give equal bytes, another seed gives others`, (t) => {
    t.is(hashOf(drawImage({ kind, ...SIZE, seed: 5 })), hashOf(image));
    t.not(hashOf(drawImage({ kind, ...SIZE, seed: 6 })), hashOf(image));
  });

  test(`${kind}: the image has background, foreground and soft pixels`, (t) => {
    const share = (wanted) => image.alpha.filter(wanted).length / image.alpha.length;
    t.true(share((a) => a === 0) > 0.25, 'background');
    t.true(share((a) => a > 127) > 0.04, 'foreground');
    t.true(share((a) => a > 0 && a < 255) > 0.004, 'soft');
  });

  test(`${kind}: a larger image shows the same subject`, (t) => {
    const large = drawImage({ kind, width: 640, height: 480, seed: 5 });
    let apart = 0;
    for (let y = 0; y < 24; y++) {
      for (let x = 0; x < 32; x++) {
        const mean = ({ alpha, width }, block) => {
          let sum = 0;
          for (let j = 0; j < block; j++) {
            for (let i = 0; i < block; i++) sum += alpha[(y * block + j) * width + x * block + i];
          }
          return sum / (255 * block * block);
        };
        apart += Math.abs(mean(image, 10) - mean(large, 20));
      }
    }
    t.true(apart / (24 * 32) < 0.02, `mean distance ${apart / (24 * 32)}`);
  });
}

test('an image taller than one band has no seam: bands are drawn like one canvas', (t) => {
  const { width, height } = { width: 100, height: 700 };
  const { alpha } = drawImage({ kind: 'crisp', width, height, seed: 3 });
  const whole = new Band(width, 0, height);
  const parts = new Band(width, 0, 64);
  const strand = strandOf({
    x: 50,
    y: 40,
    angle: 1.2,
    length: 400,
    bend: 0.9,
    wave: 0.2,
    phase: 1,
    radius: 1.3,
    steps: 30,
  });
  const look = { colour: [1, 0, 0], tip: [0, 1, 0], opacity: 0.7 };
  const surface = texture('bricks', {
    width,
    height,
    seed: 9,
    colours: [
      [0.1, 0.2, 0.3],
      [0.9, 0.8, 0.7],
    ],
  });
  const draw = (band) => {
    band.fill(ellipse(50, 200, 40, 150), surface);
    band.strand(strand, look);
  };
  draw(whole);
  for (let top = 0; top < height; top += 64) {
    parts.moveTo(top, Math.min(64, height - top));
    draw(parts);
    const n = parts.rows * width * 4;
    const from = top * width * 4;
    t.deepEqual(parts.data.subarray(0, n), whole.data.subarray(from, from + n));
  }
  t.is(alpha.length, width * height);
});

test('a disc covers its area; half of an out-of-focus edge lies inside', (t) => {
  const band = new Band(101, 0, 101);
  const white = { row: (_y, x0, x1, out) => out.fill(1, 0, (x1 - x0) * 3) };
  band.fill(disc(50.3, 49.8, 30.25), white);
  const area = band.data.reduce((sum, value, i) => sum + (i % 4 === 3 ? value : 0), 0);
  t.true(Math.abs(area / (Math.PI * 30.25 ** 2) - 1) < 0.001, `${area}`);
  t.is(edge(0), 0.5);
  t.is(defocused(0, 7), 0.5);
  t.is(defocused(7, 7), 0);
  t.is(defocused(-7, 7), 1);
  // Half a disc's radius out: the segment beyond, (arccos h − h √(1 − h²)) / π.
  const h = 0.5;
  t.true(Math.abs(defocused(3.5, 7) - (Math.acos(h) - h * Math.sqrt(1 - h * h)) / Math.PI) < 1e-12);
});

test('a strand covers length × width × opacity, also below a pixel, and no part twice where it bends', (t) => {
  for (const radius of [0.1, 0.4, 2]) {
    const band = new Band(200, 0, 60);
    const points = new Float32Array([
      20.2,
      30.4,
      radius,
      100,
      30.4,
      radius,
      100.001,
      30.4,
      radius,
      180.2,
      30.4,
      radius,
    ]);
    band.strand(points, { colour: [1, 1, 1], tip: [1, 1, 1], opacity: 0.5 });
    let sum = 0;
    for (let i = 3; i < band.data.length; i += 4) sum += band.data[i];
    const body = 160 * 2 * radius * 0.5;
    t.true(Math.abs(sum / body - 1) < 0.05, `radius ${radius}: ${sum} of ${body}`);
    t.true(Math.max(...band.data) <= 0.5);
  }
});

test('layers are composited by the standard rule for opacity and colour', (t) => {
  const band = new Band(4, 0, 4);
  const flat = (colour) => ({
    row: (_y, x0, x1, out) => out.set(Array.from({ length: (x1 - x0) * 3 }, (_, i) => colour[i % 3])),
  });
  const all = { distance: () => -100, box: [0, 0, 4, 4] };
  band.fill(all, flat([1, 0, 0]), { opacity: 0.5 });
  band.fill(all, flat([0, 0, 1]), { opacity: 0.5 });
  const [r, g, b, a] = band.data;
  t.deepEqual([r, g, b, a], [0.25, 0, 0.5, 0.75]);
});

test('distance bounds never exceed the true distances, so that no block is skipped wrongly', (t) => {
  const wrong = [];
  const shapes = {
    disc: disc(50, 50, 20),
    ellipse: ellipse(50, 50, 40, 12),
    roundBox: roundBox(50, 50, 30, 15, 6, 0.5),
    leaf: leaf(20, 40, 80, 66, 24),
    outline: outline(disc(50, 50, 30), 6),
    union: union(disc(40, 50, 20), ellipse(60, 50, 30, 15)),
    without: without(disc(50, 50, 40), disc(50, 50, 15)),
  };
  for (const [name, shape] of Object.entries(shapes)) {
    const inside = (x, y) => shape.distance(x, y) < 0;
    for (let y = 3; y < 100; y += 6) {
      for (let x = 3; x < 100; x += 6) {
        const size = Math.abs(shape.distance(x, y)) * 0.97 - 0.02;
        // No point within that distance lies on the other side.
        for (let k = 0; k < 64 && size > 0; k++) {
          const [px, py] = [x + size * Math.cos(k / 10.19), y + size * Math.sin(k / 10.19)];
          if (inside(px, py) !== inside(x, y)) wrong.push(`${name}: ${x}, ${y} says ${size}`);
        }
        const [left, top, right, bottom] = shape.box;
        if (inside(x, y)) t.true(x >= left && x <= right && y >= top && y <= bottom, `${name}: box`);
      }
    }
  }
  t.deepEqual(wrong.slice(0, 5), []);
});

test('every ground fills rows with colours that depend on the position only', (t) => {
  for (const name of GROUNDS) {
    const ground = {
      ...SIZE,
      seed: 4,
      colours: [
        [0.1, 0.2, 0.3],
        [0.9, 0.7, 0.5],
      ],
    };
    const whole = new Float32Array(SIZE.width * 3);
    texture(name, ground).row(77, 0, SIZE.width, whole);
    const part = new Float32Array(60);
    const other = texture(name, ground);
    other.row(3, 0, 40, new Float32Array(120));
    other.row(77, 100, 120, part);
    part.forEach((value, i) => {
      if (Math.abs(value - whole[300 + i]) > 1e-4) t.fail(`${name}: ${value} against ${whole[300 + i]}`);
    });
    t.true(
      whole.every((value) => value > -0.3 && value < 1.3),
      name,
    );
    t.true(Math.max(...whole) - Math.min(...whole) > 0.05, name);
  }
});

test('sizes follow the megapixels', (t) => {
  for (const mp of [0.25, 1, 4, 12, 50]) {
    const { width, height } = sizeOf(mp);
    t.true(Math.abs((width * height) / (mp * 1e6) - 1) < 0.01);
    t.true(Math.abs(width / height / (4 / 3) - 1) < 0.02);
  }
});

test('a cut-out over a photo is exact too; images without transparent parts are not used as cut-outs', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-generate-'));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="160"><circle cx="100" cy="80" r="60" fill="#c33" fill-opacity=".9"/>
    <circle cx="100" cy="80" r="40" fill="#36c"/></svg>`;
  const cutout = path.join(folder, 'ball.png');
  const photo = path.join(folder, 'photo.jpg');
  await sharp(Buffer.from(svg)).png().toFile(cutout);
  await sharp(Buffer.from(drawImage({ kind: 'glass', ...SIZE }).composite), {
    raw: { ...SIZE, channels: 3 },
  })
    .jpeg()
    .toFile(photo);
  t.deepEqual(await cutoutsIn(folder), [cutout]);
  const image = await composeImage({ cutout, photo, width: 400, height: 300, seed: 2 });
  t.true(worstError(image) <= 0.5);
  t.true(image.alpha.filter((a) => a === 255).length > 2000);
  t.is(hashOf(await composeImage({ cutout, photo, width: 400, height: 300, seed: 2 })), hashOf(image));
});

test('`bench -- generate` writes a folder of images, alphas and foregrounds that reads back as drawn', async (t) => {
  const out = path.join(mkdtempSync(path.join(tmpdir(), 'cutout-generate-')), 'set');
  const command = (...args) =>
    execFileSync(process.execPath, [inRoot('bench', 'index.js'), 'generate', ...args], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  command('--out', out, '--mp', '0.05', '--kinds', 'fur,glass', '--count', '3', '--seed', '7');
  const names = ['fur-7.png', 'fur-8.png', 'glass-7.png'];
  for (const part of ['images', 'alphas', 'foregrounds'])
    t.deepEqual(readdirSync(path.join(out, part)).sort(), names);
  const drawn = drawImage({ kind: 'glass', ...sizeOf(0.05), seed: 7 });
  const read = async (part) => {
    const { data, info } = await sharp(path.join(out, part, 'glass-7.png'))
      .raw()
      .toBuffer({ resolveWithObject: true });
    return { data: new Uint8Array(data), channels: info.channels };
  };
  t.deepEqual((await read('images')).data, drawn.composite);
  t.deepEqual((await read('foregrounds')).data, drawn.foreground);
  const { data, channels } = await read('alphas');
  t.deepEqual(
    data.filter((_, i) => i % channels === 0),
    drawn.alpha,
  );
  const list = JSON.parse(readFileSync(path.join(out, 'images.json'), 'utf8'));
  t.is(list.find(({ name }) => name === 'glass-7').sha256, hashOf(drawn));
  t.throws(() => command('--out', out, '--kinds', 'clouds'), { message: /'clouds' is invalid/ });
  t.throws(() => command(), { message: /'--out <folder>' not specified/ });
});
