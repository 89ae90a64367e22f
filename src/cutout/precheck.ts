import type { Keyv } from 'keyv';
import { isInsufficientCredits } from '../billing/insufficientCredits.ts';
import type { Reservations } from '../billing/types.ts';
import { textHash } from '../idempotency/hash.ts';
import { windowUsedUp } from '../limits/limitErrors.ts';
import type { RateLimit } from '../limits/rate.ts';
import type { Permit } from './permit.ts';
import type { CutoutRequest } from './request.ts';

interface PrecheckParts {
  readonly rate: Pick<RateLimit, 'state'>;
  readonly reservations: Pick<Reservations, 'quote'>;
  /** Addresses that passed, by account, for as long as results are cached; undefined: they are not. */
  readonly permitted: Keyv<boolean> | undefined;
}

/**
 * Checks what a request needs before anything is downloaded for it: some of its rate window left (429), the means to pay
 * (402) and its permit, which it takes (429).
 *
 * An address that passed while the account could pay passes again when it cannot: most likely that first request used the
 * credits up, and its result is cached.
 */
export type Precheck = (request: CutoutRequest, accountId: string, permit: Permit) => Promise<void>;

function addressesOf({ source, background }: CutoutRequest): readonly (string | undefined)[] {
  const address = (from: CutoutRequest['source']) => (from.kind === 'url' ? from.url : undefined);
  return [address(source), background.kind === 'image' ? address(background.source) : undefined];
}

/** Names the size as the ledger does. */
const payableTier = (size: CutoutRequest['size']) => (size === 'preview' || size === 'auto' ? size : 'full');

export function createPrecheck({ rate, reservations, permitted }: PrecheckParts): Precheck {
  return async (request, accountId, permit) => {
    const state = await rate.state(accountId);
    if (state.remaining === 0) throw windowUsedUp(state);
    const name = textHash(JSON.stringify([accountId, addressesOf(request)]));
    // Best effort: a store that is full or unreachable only forgets, and refuses nothing that can be paid for.
    const unknown = () => false;
    try {
      await reservations.quote(accountId, { size: payableTier(request.size) });
      await permitted?.set(name, true).catch(unknown);
    } catch (error) {
      if (!isInsufficientCredits(error) || !(await permitted?.get(name).catch(unknown))) throw error;
    }
    await permit.take();
  };
}
