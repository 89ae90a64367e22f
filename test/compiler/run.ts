import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

const script = fileURLToPath(new URL('./runOnnx.js', import.meta.url));

const reportSchema = z.object({
  outputs: z.array(z.string()),
  peakMb: z.number(),
  runMs: z.array(z.number()),
});

/**
 * Runs a network in another process, `batch` images at a time.
 * @param inputs float32 values of [n,3,H,W]
 * @param size of the images, for a network with a free size
 * @returns the values of output 0 for all of them
 */
export async function runNetwork(
  network: string,
  inputs: Float32Array,
  batch: number,
  size?: { readonly height: number; readonly width: number },
): Promise<Float32Array> {
  const folder = await mkdtemp(path.join(tmpdir(), 'cutout-run-'));
  try {
    const [input, output] = [path.join(folder, 'in'), path.join(folder, 'out')];
    await writeFile(input, new Uint8Array(inputs.buffer, inputs.byteOffset, inputs.byteLength));
    const { stdout } = await promisify(execFile)(process.execPath, [
      script,
      network,
      input,
      output,
      String(batch),
      ...(size ? ['first', String(size.height), String(size.width)] : []),
    ]);
    reportSchema.parse(JSON.parse(stdout));
    const bytes = await readFile(output);
    return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function largestDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length || a.length === 0) throw new RangeError(`${a.length} and ${b.length} values`);
  return a.reduce((worst, each, at) => Math.max(worst, Math.abs(each - (b[at] ?? Number.NaN))), 0);
}
