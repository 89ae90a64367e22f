import { hash, randomBytes } from 'node:crypto';

/** 32 characters, none easily mistaken for another: five bits of a random byte pick one without bias. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** `length` × 5 random bits as text. */
export function randomText(length: number): string {
  return Array.from(randomBytes(length), (byte) => alphabet.charAt(byte & 31)).join('');
}

/** 160 random bits behind a name that tells a finder what it opens. */
export const newKey = () => `cutout_${randomText(32)}`;

/** Stored instead of a key or token. A plain hash is enough for a random one: there is no dictionary to try. */
export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer');

/** Where a hash is looked up: its first 48 bits, which say nothing useful about the key. */
export const bucketOf = (hash: Buffer): number => hash.readUIntBE(0, 6);

/** The part that may be shown: a key of ours up to four random characters, a given one at most a quarter. */
export function shownPrefix(key: string): string {
  const own = /^cutout_[0-9a-z]{32}$/.test(key);
  return key.slice(0, own ? 'cutout_'.length + 4 : Math.min(4, Math.floor(key.length / 4)));
}
