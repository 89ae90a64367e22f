import { enlarge, reduce } from './planes.js';

/**
 * The prepared network by itself, in this process, without anything of the product: what it says of an image is what
 * plain upsampling would deliver.
 * @param {{file: string, threads: number, mean?: number, deviation?: number}} options mean and deviation of 0..255
 */
export async function openNetwork({ file, threads, mean = 128, deviation = 256 }) {
  const { default: ort } = await import('onnxruntime-node');
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: threads });
  const [input] = session.inputNames;
  const [output] = session.outputNames;
  const [, , height, width] = session.inputMetadata?.[0]?.shape ?? [];
  const side = { width: Number(width) || 1024, height: Number(height) || 1024 };
  return {
    ...side,
    /** @returns {Promise<Float32Array>} alpha 0..1 at the network's size */
    async alphaOf({ rgb, width: w, height: h }) {
      const planes = reduce(rgb, { width: w, height: h, channels: 3 }, side);
      const values = new Float32Array(3 * side.width * side.height);
      planes.forEach((plane, c) => {
        const from = c * plane.length;
        for (let i = 0; i < plane.length; i++)
          values[from + i] = (Math.round(plane[i] * 255) - mean) / deviation;
      });
      const feeds = { [input]: new ort.Tensor('float32', values, [1, 3, side.height, side.width]) };
      const result = await session.run(feeds, [output]);
      return Float32Array.from(result[output].data, (value) => Math.min(1, Math.max(0, value)));
    },
    /** The alpha at the image's size, bilinear. */
    bilinear: (alpha, size) => enlarge(alpha, side, size),
    close: () => session.release(),
  };
}
