/** Part of libheif's C interface; pointers are numbers, structures are returned through the first one. */
export interface Libheif {
  readonly HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _heif_context_alloc(): number;
  _heif_context_read_from_memory_without_copy(
    error: number,
    context: number,
    bytes: number,
    length: number,
    options: number,
  ): void;
  _heif_context_get_primary_image_handle(error: number, context: number, handle: number): void;
  _heif_decode_image(
    error: number,
    handle: number,
    image: number,
    colourSpace: number,
    chroma: number,
    options: number,
  ): void;
  _heif_image_get_primary_width(image: number): number;
  _heif_image_get_primary_height(image: number): number;
  _heif_image_get_plane_readonly2(image: number, channel: number, stride: number): number;
}

/** Constants of libheif/heif.h. */
const [RGB, INTERLEAVED_RGBA, INTERLEAVED] = [1, 11, 10] as const;

/** RGBA8, upright; alpha is straight unless the file says otherwise. */
export interface Pixels {
  readonly data: ArrayBuffer;
  readonly width: number;
  readonly height: number;
}

/**
 * Decodes the primary image: its transformations are applied, its alpha is part of the result. Throws for an image that
 * cannot be decoded or has more than `maxBytes` of pixels. libheif keeps what it allocated: it serves one image.
 */
export function decodePrimary(libheif: Libheif, file: Uint8Array, maxBytes: number): Pixels {
  const allocate = (bytes: number): number => {
    const pointer = libheif._malloc(bytes);
    if (pointer === 0) throw new Error('out of memory');
    return pointer;
  };
  const [error, out, bytes] = [allocate(16), allocate(8), allocate(file.length)];
  // The memory moves when it grows, so views are made anew.
  const word = (pointer: number) => new DataView(libheif.HEAPU8.buffer).getUint32(pointer, true);
  const check = () => {
    if (word(error) !== 0) throw new Error(`libheif: error ${word(error)}.${word(error + 4)}`);
  };
  libheif.HEAPU8.set(file, bytes);
  const context = libheif._heif_context_alloc();
  libheif._heif_context_read_from_memory_without_copy(error, context, bytes, file.length, 0);
  check();
  libheif._heif_context_get_primary_image_handle(error, context, out);
  check();
  libheif._heif_decode_image(error, word(out), out, RGB, INTERLEAVED_RGBA, 0);
  check();
  const image = word(out);
  const width = libheif._heif_image_get_primary_width(image);
  const height = libheif._heif_image_get_primary_height(image);
  const rowBytes = width * 4;
  if (!(rowBytes > 0 && height > 0 && rowBytes * height <= maxBytes)) throw new Error('another size');
  const plane = libheif._heif_image_get_plane_readonly2(image, INTERLEAVED, out);
  if (plane === 0) throw new Error('no pixels');
  const stride = word(out);
  const data = new Uint8Array(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const from = plane + y * stride;
    data.set(libheif.HEAPU8.subarray(from, from + rowBytes), y * rowBytes);
  }
  return { data: data.buffer, width, height };
}
