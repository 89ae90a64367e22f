import { createCipheriv, createSecretKey, hash, randomBytes, webcrypto } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

export const textHash = (text: string): string => hash('sha256', text, 'base64url');

/** The images of a request beside the one that is cut out. */
export interface FurtherImages {
  readonly background?: Uint8Array | undefined;
  readonly mask?: Uint8Array | undefined;
}

/** The call that a name is made for. */
interface NameCall {
  /** Accounts take turns where names have to wait. */
  readonly accountId?: string;
  readonly signal?: AbortSignal;
}

interface ContentIds {
  /** The name of the images with their settings. */
  readonly content: string;
  /** The name of the image that is cut out; it must not leave the process. */
  readonly image: string;
}

/**
 * Names an image, and an image with its settings. `settings` is the canonical text of the normalised options: equal for
 * calls that ask for the same in different words. Rejects with the signal's reason soon after it aborts, because the
 * images of a request that has ended are not counted any more.
 */
export type ContentIdentifier = (
  image: Uint8Array,
  settings: string,
  further?: FurtherImages,
  call?: NameCall,
) => Promise<ContentIds>;

/** The name made of the tags of the images, which `tag` computes. */
async function contentIdOf(
  image: Uint8Array,
  settings: string,
  { background, mask }: FurtherImages,
  tag: (bytes: Uint8Array) => Promise<string>,
): Promise<ContentIds> {
  const imageTag = await tag(image);
  const parts = [imageTag, background ? await tag(background) : '', settings];
  if (mask) parts.push(await tag(mask));
  return { content: textHash(JSON.stringify(parts)), image: imageTag };
}

/** Bytes that are hashed without yielding to the event loop, in about 0.2 ms. */
const piece = 2 ** 20;

/**
 * Content names under a secret key; without one the key is random, and no other process gives the same names.
 *
 * An image is identified by its GMAC under that key: two different images of up to 22 MB have the same tag with a
 * probability below 2^-107. The nonce is constant, so that equal images have equal tags. That is safe as long as no tag
 * leaves the process; names are hashes of them.
 *
 * Without SHA instructions GMAC takes a fifteenth of the time of SHA-256 (22 MB: 4 ms against 60), so it runs on the
 * JavaScript thread (decision 0088). It yields after each piece: uploads often end at the same time, and hashing
 * all of them in a row would block every other request.
 */
export function createContentIdentifier(key: Uint8Array = randomBytes(32)): ContentIdentifier {
  const secret = createSecretKey(key);
  const nonce = Buffer.alloc(12);
  const tag = async (bytes: Uint8Array, signal?: AbortSignal): Promise<string> => {
    const mac = createCipheriv('aes-256-gcm', secret, nonce);
    mac.setAAD(bytes.subarray(0, piece));
    for (let at = piece; at < bytes.length; at += piece) {
      await nextTurn();
      signal?.throwIfAborted();
      mac.setAAD(bytes.subarray(at, at + piece));
    }
    mac.final();
    return mac.getAuthTag().toString('base64url');
  };
  return async (image, settings, further = {}, { signal } = {}) =>
    contentIdOf(image, settings, further, (bytes) => tag(bytes, signal));
}

const sha256 = async (bytes: Uint8Array): Promise<ArrayBuffer> => webcrypto.subtle.digest('SHA-256', bytes);

/**
 * The maximum number of digests computed at a time; the others wait. Each copies its bytes, which no budget
 * counts, and takes a thread that decoding needs too.
 */
const maxDigests = 4;

/** Callers that wait, one queue for each account; the accounts take turns. */
class WaitingCallers {
  readonly #queues = new Map<string, (() => void)[]>();

  wait(accountId: string): Promise<void> {
    return new Promise((turn) => {
      const queue = this.#queues.get(accountId);
      if (queue) queue.push(turn);
      else this.#queues.set(accountId, [turn]);
    });
  }

  /** The caller whose turn it is. */
  next(): (() => void) | undefined {
    const [first] = this.#queues;
    if (!first) return undefined;
    const [accountId, queue] = first;
    const turn = queue.shift();
    this.#queues.delete(accountId);
    if (queue.length > 0) this.#queues.set(accountId, queue);
    return turn;
  }
}

/** Names that are the same on every node and after every restart. SHA-256, on libuv's pool. */
export function createSharedContentIdentifier(digest = sha256): ContentIdentifier {
  let running = 0;
  const waiting = new WaitingCallers();
  const sum = async (bytes: Uint8Array, { accountId = '', signal }: NameCall): Promise<string> => {
    if (running === maxDigests) await waiting.wait(accountId);
    else running += 1;
    try {
      signal?.throwIfAborted();
      return Buffer.from(await digest(bytes)).toString('base64url');
    } finally {
      const next = waiting.next();
      if (next) next();
      else running -= 1;
    }
  };
  return async (image, settings, further = {}, call = {}) =>
    contentIdOf(image, settings, further, (bytes) => sum(bytes, call));
}
