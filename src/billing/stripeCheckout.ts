import Stripe from 'stripe';
import type { Pack } from './packs.ts';
import { formatCredits, isQuarterCredits, type QuarterCredits } from './price.ts';

export interface PurchaseOptions {
  readonly packs: readonly Pack[];
  readonly secretKey: string;
  /** Secret of the webhook endpoint, 'whsec_…'. */
  readonly webhookSecret: string;
  /** Page to which the buyer returns, having paid or not. */
  readonly returnUrl: string;
  /** Replaces Stripe's server. */
  readonly api?: { readonly host: string; readonly port: number; readonly protocol: 'http' | 'https' };
}

/** A payment that was received. */
export interface Purchase {
  readonly accountId: string;
  readonly amount: QuarterCredits;
  /** Stripe's checkout session, which counts once. */
  readonly session: string;
  readonly event: string;
}

/** 'unclaimed': paid after the account was deleted and posted there, for nobody; it should be refunded. */
export type BookedPurchase = 'posted' | 'duplicate' | 'unclaimed';

/** Writes a purchase into ledger and audit log. Rejects with STORE_UNKNOWN_ACCOUNT. */
type BookPurchase = (purchase: Purchase) => Promise<BookedPurchase>;

type WebhookOutcome =
  | (Purchase & { readonly outcome: BookedPurchase })
  /** Correctly signed, but of no concern here. */
  | { readonly outcome: 'ignored'; readonly type: string }
  /** Not signed by Stripe, or at another time. */
  | { readonly outcome: 'refused' };

/** Milliseconds that Stripe's clock may be ahead of this one; the library tolerates as much for old signatures. */
const clockToleranceMs = 300_000;

/**
 * Credit packs bought through Stripe Checkout. Credits are posted once per checkout session, when Stripe reports,
 * signed, that the payment was received, however often and through whichever events.
 */
export class Purchases {
  readonly packs: readonly Pack[];
  readonly #options: PurchaseOptions;
  readonly #book: BookPurchase;
  readonly #stripe: Stripe;

  constructor(options: PurchaseOptions, book: BookPurchase) {
    this.packs = options.packs;
    this.#options = options;
    this.#book = book;
    this.#stripe = new Stripe(options.secretKey, { ...options.api, telemetry: false, timeout: 15_000 });
  }

  /** URL of the payment page; undefined if there is no such pack. Rejects as Stripe's library does. */
  async checkout(accountId: string, packId: string): Promise<string | undefined> {
    const pack = this.packs.find(({ id }) => id === packId);
    if (!pack) return undefined;
    const session = await this.#stripe.checkout.sessions.create({
      mode: 'payment',
      client_reference_id: accountId,
      // Records what was sold: the packs may have changed when the payment is received.
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
      success_url: this.#options.returnUrl,
      cancel_url: this.#options.returnUrl,
    });
    if (!session.url) throw new Error(`Stripe gave no address for session ${session.id}.`);
    return session.url;
  }

  /** `body`: the bytes as received. Rejects if a payment cannot be booked, so that Stripe repeats the event. */
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
    // Sessions of other products of the same Stripe account, and those whose payment is pending.
    if (account === undefined || quarter_credits === undefined || session.payment_status !== 'paid') {
      return { outcome: 'ignored', type: event.type };
    }
    const amount = Number(quarter_credits);
    if (!isQuarterCredits(amount))
      throw new Error(`Session ${session.id} sold ${quarter_credits} quarter credits.`);
    const purchase = { accountId: account, amount, session: session.id, event: event.id };
    return { outcome: await this.#book(purchase), ...purchase };
  }

  #verify(body: Buffer, signature: string): Stripe.Event | undefined {
    // Stripe's library checks the age of a signature only: one that is dated ahead would be valid for longer.
    const dated = Number(/(?:^|,)t=(\d{1,12})(?:,|$)/.exec(signature)?.[1]);
    if (!(dated * 1000 < Date.now() + clockToleranceMs)) return undefined;
    try {
      return this.#stripe.webhooks.constructEvent(body, signature, this.#options.webhookSecret);
    } catch (error) {
      if (error instanceof Stripe.errors.StripeSignatureVerificationError || error instanceof SyntaxError)
        return undefined;
      throw error;
    }
  }
}
