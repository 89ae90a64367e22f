// Mattes of the network, cached in a folder.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { MATTE_SIDE } from './describe.js';
import { over, stretched } from './images.js';

/** The colour behind transparent pixels in the network's input (native/image/network_input.h). */
const GRAY = [128, 128, 128];

/** Returns a function for the matte of an image, cached as `name`: values 0..1 in a square. */
export function mattes(folder, make) {
  mkdirSync(folder, { recursive: true });
  return async (image, name) => {
    const file = path.join(folder, `${name.replaceAll('/', '__')}.u8`);
    if (!existsSync(file)) {
      const alpha = await make(await stretched(over(image, GRAY), MATTE_SIDE));
      writeFileSync(`${file}.part`, alpha);
      renameSync(`${file}.part`, file);
    }
    const bytes = readFileSync(file);
    const data = new Float32Array(bytes.length);
    for (let at = 0; at < data.length; at++) data[at] = bytes[at] / 255;
    return { data, width: MATTE_SIDE, height: MATTE_SIDE };
  };
}
