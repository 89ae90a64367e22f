import { formatCredits } from '../../../billing/price.ts';
import type { Purchases } from '../../../billing/stripeCheckout.ts';
import { excerpt, malformed } from '../../../errors.ts';
import { type Attempts, attemptSourceOf } from '../../../limits/attempts.ts';
import { tooManyAttempts } from '../../../limits/limitErrors.ts';
import type { Logger } from '../../../ops/log.ts';
import { accountOf, formOf, type Middleware } from '../../context.ts';
import type { RawBody } from '../../middleware/receiveBody.ts';
import type { Route } from '../../router.ts';
import { packInfos } from '../console/purchases.ts';

/** Stripe's events have a few kilobytes. */
const eventBytes = 256 * 1024;
const tooLarge = () => malformed('The event is larger than 256 kB.');

/**
 * `GET /billing/packs` and `POST /billing/checkout` (field `pack`) for accounts, `POST /billing/stripe` for
 * Stripe, which authenticates by its signature. `key`: guard before a body; `body`: reads it, with the
 * guards after it; `raw`: the unparsed body, which is what is signed; `attempts` slows down wrong signatures.
 */
export function billingRoutes(
  before: {
    readonly key: Middleware;
    readonly body: readonly Middleware[];
    readonly raw: RawBody;
    readonly attempts: Attempts;
  },
  purchases: Purchases,
  logger: Logger,
): Route[] {
  const list: Middleware = (ctx) => {
    ctx.body = { data: packInfos(purchases) };
  };
  const checkout: Middleware = async (ctx) => {
    const pack = formOf(ctx).text.get('pack') ?? '';
    const url = await purchases.checkout(accountOf(ctx).id, pack);
    if (url === undefined) {
      const known = purchases.packs.map(({ id }) => id).join(', ');
      throw malformed(`Expected pack to be one of ${known}, received "${excerpt(pack)}".`);
    }
    ctx.body = { data: { url } };
  };
  const webhook: Middleware = async (ctx) => {
    // Counted apart from unknown keys, so that guessing keys does not delay Stripe's events.
    const source = `stripe:${attemptSourceOf(ctx.ip)}`;
    const wait = await before.attempts.wait(source);
    if (wait > 0) throw tooManyAttempts('wrong signatures', wait);
    const event = await before.raw(ctx, eventBytes, tooLarge);
    const outcome = await purchases.receive(event, ctx.get('Stripe-Signature'));
    ctx.state.telemetry.add({ purchase: outcome.outcome });
    if (outcome.outcome === 'unclaimed') {
      const { accountId: account, session, amount } = outcome;
      const facts = { account, session, credits: formatCredits(amount) };
      logger.error(facts, 'purchase: paid after its account was deleted; refund it at Stripe');
    }
    if (outcome.outcome === 'refused') {
      await before.attempts.failed(source);
      throw malformed('The signature of the event is missing, wrong or too old.');
    }
    ctx.body = { received: true };
  };
  return [
    { method: 'GET', paths: ['/billing/packs'], handlers: [before.key, list] },
    { method: 'POST', paths: ['/billing/checkout'], handlers: [before.key, ...before.body, checkout] },
    { method: 'POST', paths: ['/billing/stripe'], handlers: [webhook] },
  ];
}
