import Stripe from 'stripe';
import type { Accounts } from '../accounts/accounts.ts';
import type { AuditLog } from '../accounts/audit.ts';
import type { Ledger } from './ledger.ts';
import type { Pack } from './packs.ts';
import { formatCredits, isQuarterCredits, type QuarterCredits } from './price.ts';

export interface PurchaseOptions {
  readonly packs: readonly Pack[];
  readonly secretKey: string;
  /** Of the webhook endpoint, 'whsec_…'. */
  readonly webhookSecret: string;
  /** Where the buyer returns to. */
  readonly successUrl: string;
  readonly cancelUrl: string;
  /** Another server than Stripe's. */
  readonly api?: { readonly host: string; readonly port: number; readonly protocol: 'http' | 'https' };
}

/** The books that purchases are posted to. */
export interface PurchaseBooks {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly audit: AuditLog;
}

export type WebhookOutcome =
  | { readonly outcome: 'posted' | 'duplicate'; readonly accountId: string; readonly credits: QuarterCredits }
  /** Paid after the account was deleted: posted there, where nobody can use it. The money is to be given back. */
  | {
      readonly outcome: 'unclaimed';
      readonly accountId: string;
      readonly credits: QuarterCredits;
      readonly session: string;
    }
  /** Properly signed, and no business of ours. */
  | { readonly outcome: 'ignored'; readonly type: string }
  /** Not signed by Stripe, or too long ago. */
  | { readonly outcome: 'refused' };

/**
 * Credit packs bought through Stripe Checkout. Credits are posted when Stripe says, signed, that the money is
 * there, once for a checkout session however often and through whichever events it says so.
 */
export class Purchases {
  readonly packs: readonly Pack[];
  readonly #options: PurchaseOptions;
  readonly #books: PurchaseBooks;
  readonly #stripe: Stripe;

  constructor(options: PurchaseOptions, books: PurchaseBooks) {
    this.packs = options.packs;
    this.#options = options;
    this.#books = books;
    this.#stripe = new Stripe(options.secretKey, { ...options.api, telemetry: false, timeout: 15_000 });
  }

  /** Address of the page to pay on; undefined when there is no such pack. Rejects as Stripe's library does. */
  async checkout(accountId: string, packId: string): Promise<string | undefined> {
    const pack = this.packs.find(({ id }) => id === packId);
    if (!pack) return undefined;
    const session = await this.#stripe.checkout.sessions.create({
      mode: 'payment',
      client_reference_id: accountId,
      // What was sold is written down here: the packs may have changed when the money arrives.
      metadata: { account: accountId, quarter_credits: String(pack.credits) },
      line_items: [
        {
          quantity: 1,
          price_data: {
            currency: pack.currency,
            unit_amount: pack.price,
            product_data: { name: `${formatCredits(pack.credits)} credits` },
          },
        },
      ],
      success_url: this.#options.successUrl,
      cancel_url: this.#options.cancelUrl,
    });
    if (!session.url) throw new Error(`Stripe gave no address for session ${session.id}.`);
    return session.url;
  }

  /**
   * `body`: the bytes as they came. Rejects when money was paid that cannot be booked, so that Stripe says it
   * again and the operator learns of it.
   */
  async receive(body: Buffer, signature: string): Promise<WebhookOutcome> {
    const event = this.#verify(body, signature);
    if (!event) return { outcome: 'refused' };
    if (
      event.type !== 'checkout.session.completed' &&
      event.type !== 'checkout.session.async_payment_succeeded'
    ) {
      return { outcome: 'ignored', type: event.type };
    }
    const session = event.data.object;
    const { account, quarter_credits } = session.metadata ?? {};
    // Sessions of other products of the same Stripe account, and those whose money is still under way.
    if (account === undefined || quarter_credits === undefined || session.payment_status !== 'paid') {
      return { outcome: 'ignored', type: event.type };
    }
    const amount = Number(quarter_credits);
    if (!isQuarterCredits(amount))
      throw new Error(`Session ${session.id} sold ${quarter_credits} quarter credits.`);
    return this.#post(account, amount, { session: session.id, event: event.id });
  }

  /**
   * Money for a deleted account is in the books all the same, or Stripe would say it again for days and nobody could find it
   * afterwards. The audit entry comes first: a server that dies in between writes it twice, never not at all.
   */
  async #post(
    accountId: string,
    amount: QuarterCredits,
    { session, event }: { readonly session: string; readonly event: string },
  ): Promise<WebhookOutcome> {
    const { accounts, ledger, audit } = this.#books;
    const reference = `stripe ${session}`;
    const isDeleted = async () => (await accounts.get(accountId)).deletedAt !== null;
    const late = 'paid after the account was deleted';
    const tell = () =>
      audit.write({
        action: 'credits.purchase',
        subject: accountId,
        detail: `${formatCredits(amount)} ${late}: refund Stripe's session ${session}, then \`cutout credits adjust\``,
      });
    const deleted = await isDeleted();
    if (deleted && !(await ledger.hasReference(accountId, 'purchase', reference))) await tell();
    const { outcome } = await ledger.post(accountId, {
      kind: 'purchase',
      amount,
      reference,
      note: deleted ? `${event}: ${late}` : event,
    });
    if (outcome === 'insufficient') throw new Error('A purchase cannot lack credits.');
    if (outcome === 'duplicate') return { outcome, accountId, credits: amount };
    // Deleted between the look at it and the entry.
    const since = !deleted && (await isDeleted());
    if (since) await tell();
    return deleted || since
      ? { outcome: 'unclaimed', accountId, credits: amount, session }
      : { outcome, accountId, credits: amount };
  }

  #verify(body: Buffer, signature: string): Stripe.Event | undefined {
    try {
      return this.#stripe.webhooks.constructEvent(body, signature, this.#options.webhookSecret);
    } catch (error) {
      if (error instanceof Stripe.errors.StripeSignatureVerificationError || error instanceof SyntaxError)
        return undefined;
      throw error;
    }
  }
}
