import { execFileSync } from 'node:child_process';
import test from 'ava';
import { encodeBytes } from '../../src/image/encode.ts';

const { href } = new URL('../../src/image/encode.js', import.meta.url);
const processes = new URL('../fixtures/process.js', import.meta.url).href;

/** In a process of its own, whose peak is that of the encoder: bytes beside the raster. */
function measure(format: 'jpg' | 'webp' | 'avif', width: number, height: number): number {
  const script = `
    const { encode } = await import(${JSON.stringify(href)});
    const { processState } = await import(${JSON.stringify(processes)});
    const data = Buffer.alloc(${4 * width * height});
    // Noise: the worst that an encoder can get.
    for (let i = 0, state = 1; i < data.length; i++) data[i] = (state = (state * 1103515245 + 12345) >>> 0) >>> 24;
    const options = { format: '${format}', channels: 'rgba', opaque: false, signal: new AbortController().signal };
    // Loads the encoder.
    await encode({ data: data.subarray(0, 4096), width: 32, height: 32 }, options, {});
    const { resident } = processState(process.pid);
    const { bytes } = await encode({ data, width: ${width}, height: ${height} }, options, {});
    if (bytes.length < 1000) throw new Error('nothing was encoded');
    console.log((processState(process.pid).peak - resident) * 1e6);`;
  return Number(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
  );
}

for (const format of ['webp', 'avif'] as const)
  test(`${format}: encoding noise takes no more memory than is reserved for it`, (t) => {
    for (const [width, height] of [
      [1200, 1000],
      [2000, 1500],
    ] as const) {
      const bytes = measure(format, width, height);
      const bound = encodeBytes(format, { width, height });
      t.log(`${width}x${height}: ${(bytes / 1e6).toFixed(0)} MB of ${(bound / 1e6).toFixed(0)}`);
      t.true(bytes > 0);
      t.true(bytes <= bound, `${bytes} of ${bound}`);
    }
  });
