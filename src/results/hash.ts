import { createCipheriv, createHash, randomBytes, webcrypto } from 'node:crypto';

export const textHash = (text: string): string => createHash('sha256').update(text).digest('base64url');

/**
 * Names an image with its settings. `settings` is the canonical text of the normalised options: equal for
 * calls that ask for the same in different words.
 */
export type ContentName = (
  image: Uint8Array,
  settings: string,
  background?: Uint8Array,
) => string | Promise<string>;

const nameOf = (image: string, settings: string, background: string | undefined): string =>
  textHash(JSON.stringify([image, background ?? '', settings]));

/**
 * Names for all who have the key; a process of its own without one. Pictures are told apart by GMAC under this key that
 * nobody else ever sees: two different ones of up to 22 MB have the same name with a probability below 2^-107. One nonce
 * for all is what makes equal pictures equal, and harmless while no tag leaves the process (names are hashes of them). Twenty times as fast as SHA-256 without its instructions
 * (22 MB: 4 ms against 60), so it may run on the JavaScript thread (docs/decisions/0088).
 */
export function createContentName(
  key: Uint8Array = randomBytes(32),
): (...args: Parameters<ContentName>) => string {
  const nonce = Buffer.alloc(12);
  const tag = (bytes: Uint8Array): string => {
    const mac = createCipheriv('aes-256-gcm', key, nonce).setAAD(bytes);
    mac.final();
    return mac.getAuthTag().toString('base64url');
  };
  return (image, settings, background) => nameOf(tag(image), settings, background && tag(background));
}

/** Names that are the same on every node and after every restart. SHA-256, on libuv's pool. */
export const sharedContentName: ContentName = async (image, settings, background) => {
  const sum = async (bytes: Uint8Array) =>
    Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('base64url');
  return nameOf(await sum(image), settings, background && (await sum(background)));
};
