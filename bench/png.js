// node bench/png.js [threads]: time, speed and size of our PNG encoder at several efforts beside libvips',
// medians. Needs the test addon (npm run setup -- --tests). The photo is taken from ../shared/data where
// that exists; the other pictures are generated. Nothing here is a test.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import sharp from 'sharp';
import { inBuild, inRoot } from '../scripts/setup/paths.js';

const { png } = createRequire(import.meta.url)(inBuild('native', 'Release', 'cutout_test.node'));

const ROUNDS = 5;
const SIZES = { '1 MP': [1200, 833], '12 MP': [4240, 2830] };
const PHOTO = inRoot('..', 'shared', 'data', 'hires_photos', 'Bryggen.jpg');
const threads = Number(process.argv[2] ?? availableParallelism());

/** Opacity 0..255 of a big shape with a soft, hairy rim that fills about half the picture. */
function opacity(x, y, width, height) {
  const dx = (x / width - 0.5) / 0.36;
  const dy = (y / height - 0.55) / 0.45;
  const angle = Math.atan2(dy, dx);
  const radius = Math.hypot(dx, dy) + 0.03 * Math.sin(angle * 60) + 0.02 * Math.sin(angle * 333);
  return Math.round(255 * Math.min(1, Math.max(0, 0.5 + (1 - radius) * 12)));
}

/** Makes an opaque RGBA picture a cut-out: colour 0 where nothing is left. */
function cutOut(pixels, width, height) {
  const result = Buffer.from(pixels);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i += 4) {
      const alpha = opacity(x, y, width, height);
      if (alpha === 0) result.writeUInt32LE(0, i);
      else result[i + 3] = alpha;
    }
  }
  return result;
}

/** Shading, waves and grain: statistics like a photo's. */
function generatedPhoto(width, height) {
  const pixels = Buffer.alloc(width * height * 4);
  let state = 1;
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i += 4) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const light = 110 + 60 * Math.sin(x / 197 + y / 243) + 30 * Math.sin(x / 21) * Math.cos(y / 27);
      const grain = (state >>> 24) / 28;
      pixels[i] = light + grain;
      pixels[i + 1] = light * 0.9 + grain + 10;
      pixels[i + 2] = light * 0.7 + grain + 20;
      pixels[i + 3] = 255;
    }
  }
  return pixels;
}

async function pictures(width, height) {
  const found = {};
  const generated = generatedPhoto(width, height);
  found['generated, opaque'] = generated;
  found['generated, cut out'] = cutOut(generated, width, height);
  if (existsSync(PHOTO)) {
    const photo = await sharp(PHOTO).resize(width, height, { fit: 'fill' }).ensureAlpha().raw().toBuffer();
    found['photo, opaque'] = photo;
    found['photo, cut out'] = cutOut(photo, width, height);
  } else {
    console.log(`no photo: ${PHOTO} does not exist`);
  }
  const circles = Array.from({ length: 60 }, (_, i) => {
    const at = (n) => ((i * 7919 * n * 31) % 997) / 997;
    const fill = `hsl(${Math.round(at(4) * 360)},70%,50%)`;
    return `<circle cx="${at(1) * width}" cy="${at(2) * height}" r="${width * (0.01 + 0.06 * at(3))}"
      fill="${fill}" stroke="black" stroke-width="3"/>`;
  });
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${circles.join('')}</svg>`;
  found.drawing = await sharp(Buffer.from(drawing)).ensureAlpha().raw().toBuffer();
  return found;
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

function print(encoder, ms, bytes, size) {
  console.log(
    `  ${encoder.padEnd(22)}${ms.toFixed(1).padStart(9)} ms${(bytes / ms / 1000).toFixed(0).padStart(7)} MB/s` +
      `${(size / 1000).toFixed(0).padStart(9)} kB`,
  );
}

for (const [name, [width, height]] of Object.entries(SIZES)) {
  for (const [kind, pixels] of Object.entries(await pictures(width, height))) {
    console.log(`${name}, ${kind}`);
    for (const effort of [1, 3, 4, 6, 8]) {
      // The caller works too, so one thread fewer in the pool.
      const run = png.timePng(pixels, width, height, { alphaOnly: false, effort }, threads - 1, ROUNDS);
      print(`ours, effort ${effort}`, median(run.ms), pixels.length, run.size);
    }
    const matte = png.timePng(pixels, width, height, { alphaOnly: true, effort: 3 }, threads - 1, ROUNDS);
    print('ours, alpha only', median(matte.ms), pixels.length, matte.size);
    for (const compressionLevel of [1, 6]) {
      const ms = [];
      let size = 0;
      for (let round = 0; round < 3; round++) {
        const begin = performance.now();
        const image = sharp(pixels, { raw: { width, height, channels: 4 } });
        size = (await image.png({ compressionLevel }).toBuffer()).length;
        ms.push(performance.now() - begin);
      }
      print(`libvips, level ${compressionLevel}`, median(ms), pixels.length, size);
    }
  }
}
