import type { Pixels } from '../../../src/image/heif/libheif.ts';

/** The largest file that the service reads. */
const maxBytes = 22 * 1024 * 1024;

/** Types that every service accepts, by their first bytes. */
const accepted = [/^\xff\xd8\xff/, /^\x89PNG\r\n/, /^RIFF.{4}WEBP/s];

/** Brands of HEIC in the first box of a file. */
const heic = /^.{4}ftyp.*(?:hei[cxms]|hevc|mif1|msf1)/s;

const heicSeconds = 60;

/** Decodes a HEIC in a worker, which ends afterwards. Rejects where it cannot be decoded. */
function decodeHeic(file: ArrayBuffer): Promise<ImageData> {
  const worker = new Worker(new URL('./heicWorker.ts', import.meta.url), { type: 'module' });
  const decoded = new Promise<ImageData>((resolve, reject) => {
    const refuse = () => reject(new Error('The HEIC image could not be decoded.'));
    worker.onmessage = ({ data }: MessageEvent<Pixels | undefined>) =>
      data ? resolve(new ImageData(new Uint8ClampedArray(data.data), data.width, data.height)) : refuse();
    worker.onerror = refuse;
    setTimeout(refuse, heicSeconds * 1000);
    worker.postMessage(file, [file]);
  });
  return decoded.finally(() => worker.terminate());
}

/** The pixels, upright and in sRGB; undefined for what neither the browser nor libheif reads. */
async function pixelsOf(file: File, head: string): Promise<ImageBitmap | undefined> {
  const shown = await createImageBitmap(file).catch(() => undefined);
  if (shown || !heic.test(head)) return shown;
  return createImageBitmap(await decodeHeic(await file.arrayBuffer()));
}

/**
 * The image as a file that every service accepts and every browser shows: the file itself where it is JPEG, PNG or WebP;
 * else what the browser or libheif makes of it, as PNG, or JPEG where that is too large. What nothing here can read is
 * left to the service.
 */
export async function readable(file: File): Promise<File> {
  const bytes = new Uint8Array(await file.slice(0, 64).arrayBuffer());
  const head = String.fromCharCode(...bytes);
  if (accepted.some((type) => type.test(head))) return file;
  const pixels = await pixelsOf(file, head);
  if (!pixels) return file;
  const canvas = new OffscreenCanvas(pixels.width, pixels.height);
  canvas.getContext('2d')?.drawImage(pixels, 0, 0);
  pixels.close();
  const png = await canvas.convertToBlob({ type: 'image/png' });
  const image =
    png.size <= maxBytes ? png : await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.95 });
  const extension = image.type === 'image/png' ? 'png' : 'jpg';
  return new File([image], `${file.name.replace(/\.[^.]*$/, '')}.${extension}`, { type: image.type });
}
