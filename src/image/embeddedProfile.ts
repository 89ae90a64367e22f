import { deflateSync, inflateSync } from 'node:zlib';
import sharp from 'sharp';
import { forDecoder } from './container/check.ts';
import { findChunk, pngChunk } from './container/png.ts';
import { boundedProfile, changedBytes } from './sanitiseProfile.ts';
import type { EmbeddedProfile, InputFormat, Probe } from './types.ts';

/** Where every profile has `acsp`; a file of more than so many is no image with a profile. */
const signatureAt = 36;
const maxSignatures = 100;

/**
 * Where the beginning of a profile lies in a file. Looked for by its signature: a search for all of it takes as many steps as
 * the file has bytes, times its length, where both are nearly all zeros.
 */
function placesOf(bytes: Buffer, from: Uint8Array): readonly number[] {
  const signature = Buffer.from('acsp');
  const found: number[] = [];
  let at = bytes.indexOf(signature);
  for (let looks = 0; at !== -1; at = bytes.indexOf(signature, at + 1), looks++) {
    if (looks === maxSignatures) return [];
    const begin = at - signatureAt;
    if (begin >= 0 && Buffer.compare(bytes.subarray(begin, begin + from.length), from) === 0)
      found.push(begin);
  }
  return found;
}

/** An `iCCP` chunk of the same name, its profile's beginning replaced; undefined if it has another beginning. */
function replacedChunk(data: Buffer, { from, to }: Exclude<EmbeddedProfile, 'unusable'>): Buffer | undefined {
  const at = data.indexOf(0) + 2;
  const profile = inflateSync(data.subarray(at), { maxOutputLength: 16 * 1024 * 1024 });
  if (Buffer.compare(profile.subarray(0, from.length), from) !== 0) return;
  profile.set(to);
  return pngChunk('iCCP', data.subarray(0, at), deflateSync(profile, { level: 1 }));
}

/** A copy of the file with another beginning of its profile; undefined where the profile is not in one piece. */
function replaced(
  file: Uint8Array,
  format: InputFormat,
  profile: Exclude<EmbeddedProfile, 'unusable'>,
): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (format === 'png') {
    const found = findChunk(bytes, 'iCCP');
    const chunk = found && replacedChunk(found.data, profile);
    return chunk && Buffer.concat([bytes.subarray(0, found.from), chunk, bytes.subarray(found.end)]);
  }
  const places = placesOf(bytes, profile.from);
  if (places.length === 0) return;
  const copy = Buffer.from(bytes);
  for (const at of places) copy.set(profile.to, at);
  return copy;
}

interface CheckedProfile {
  /** The bounded profile; absent if it is unusable. */
  readonly bounded?: Uint8Array;
  /** What to do about the one in the file; absent: nothing. */
  readonly embedded?: EmbeddedProfile;
}

/** Whether the profile `icc` of a file may reach the colour library as it is, with fewer tags, or not at all. */
export async function checkProfile(
  file: Uint8Array,
  format: InputFormat,
  icc: Uint8Array,
): Promise<CheckedProfile> {
  const bounded = boundedProfile(icc);
  if (!bounded) return { embedded: 'unusable' };
  if (bounded === icc) return { bounded };
  const end = changedBytes(icc);
  const embedded = { from: Uint8Array.from(icc.subarray(0, end)), to: bounded.slice(0, end) };
  // Read back, so that whatever else the file holds, the library gets this profile.
  const readBack = async () => {
    const bytes = replaced(file, format, embedded);
    const found = bytes && (await sharp(bytes, { limitInputPixels: false }).metadata()).icc;
    return found && Buffer.compare(found, bounded) === 0;
  };
  return { bounded, embedded: (await readBack().catch(() => false)) ? embedded : 'unusable' };
}

/** What sharp is given to decode a file and, unless `ignoreIcc`, to convert its colours by its profile. */
export function forConversion(
  file: Uint8Array,
  { format, embedded }: Pick<Probe, 'format' | 'embedded'>,
): { readonly bytes: Uint8Array; readonly ignoreIcc: boolean } {
  const bytes = forDecoder(file, format);
  if (!embedded) return { bytes, ignoreIcc: false };
  const safe = embedded === 'unusable' ? undefined : replaced(bytes, format, embedded);
  return safe ? { bytes: safe, ignoreIcc: false } : { bytes, ignoreIcc: true };
}
