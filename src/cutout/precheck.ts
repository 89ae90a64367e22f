import type { Keyv } from 'keyv';
import { type CreditCheck, insufficientCredits } from '../billing/creditCheck.ts';
import { textHash } from '../idempotency/hash.ts';
import { windowUsedUp } from '../limits/refuse.ts';
import type { Admission } from './admission.ts';
import type { CutoutRequest } from './request.ts';

export interface PrecheckParts {
  readonly checkCredit: CreditCheck;
  /**
   * Addresses that accounts were permitted to have fetched, for as long as results are kept. Undefined: none are kept.
   */
  readonly permitted: Keyv<boolean> | undefined;
}

/**
 * What a call needs before the service fetches anything for it: something left of its rate window (429), the means to
 * pay (402), and a place among the calls of its account (429). Gives what leaves that place.
 *
 * Who asked for an address while there were means for it may ask for it again when they are used up: most likely that
 * very call used them, and its result is kept.
 */
export type Precheck = (request: CutoutRequest, accountId: string) => Promise<() => Promise<void>>;

function addressesOf({ source, background }: CutoutRequest): readonly (string | undefined)[] {
  const address = (from: CutoutRequest['source']) => (from.kind === 'url' ? from.url : undefined);
  return [address(source), background.kind === 'image' ? address(background.source) : undefined];
}

/** What is asked of the books for a size. */
const payableSize = (size: CutoutRequest['size']) => (size === 'preview' || size === 'auto' ? size : 'full');

export function createPrecheck(admission: Admission, { checkCredit, permitted }: PrecheckParts): Precheck {
  return async (request, accountId) => {
    const state = await admission.rate(accountId);
    if (state.remaining === 0) throw windowUsedUp(state);
    const name = textHash(JSON.stringify([accountId, addressesOf(request)]));
    const shortfall = await checkCredit(accountId, payableSize(request.size));
    // A convenience: a store that cannot be reached or is full remembers nothing, and refuses nothing that can be paid for.
    const unknown = () => false;
    if (!shortfall) await permitted?.set(name, true).catch(unknown);
    else if (!(await permitted?.get(name).catch(unknown))) throw insufficientCredits(shortfall);
    return admission.enter(accountId);
  };
}
