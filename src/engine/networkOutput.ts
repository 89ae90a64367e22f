import type { Engine } from './engine.ts';
import type { Pixels } from './types.ts';

/** The engine returns a network's output beside a mask; this one does not limit what the network sees. */
const EVERYTHING = { data: Uint8Array.of(255), width: 1, height: 1 };

/**
 * Runs a loaded network at its usual size and returns its output for an image, before anything is made of it: values from 0 to
 * 1, after the sigmoid where it gives logits, row-major without padding, of the network's width and height. The content of
 * `pixels` is undefined afterwards. Rejects with EngineError.
 */
export async function networkOutput(engine: Pick<Engine, 'matte'>, network: string, pixels: Pixels) {
  const { width, height } = pixels;
  const { output, inferMs } = await engine.matte(pixels, {
    network,
    width,
    height,
    hiddenColour: 'keep',
    mask: EVERYTHING,
    returnOutput: true,
  });
  if (output === undefined) throw new Error('The engine returned no output of the network.');
  const { data } = output;
  const values = new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4);
  return { values, width: output.width, height: output.height, inferMs };
}
