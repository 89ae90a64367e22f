import type { IncomingMessage } from 'node:http';
import { formatCredits } from '../../../billing/price.ts';
import type { Purchases } from '../../../billing/purchases.ts';
import { excerpt, fail } from '../../../errors.ts';
import type { Logger } from '../../../ops/log.ts';
import { accountOf, type Context, formOf, type Middleware } from '../../context.ts';
import { continueUpload } from '../../expect.ts';
import type { Route } from '../../router.ts';

/** Stripe's events are a few kilobytes. */
const eventBytes = 256 * 1024;

/**
 * `GET /billing/packs` and `POST /billing/checkout` (field `pack`) for accounts, `POST /billing/stripe` for Stripe,
 * which proves itself by its signature. `before`: key and body.
 */
export function billingRoutes(
  before: { readonly key: readonly Middleware[]; readonly body: Middleware },
  purchases: Purchases,
  logger: Logger,
): Route[] {
  const list: Middleware = (ctx) => {
    ctx.body = {
      data: purchases.packs.map(({ id, credits, price, currency }) => ({
        id,
        credits: credits / 4,
        price,
        currency,
      })),
    };
  };
  const checkout: Middleware = async (ctx) => {
    const pack = formOf(ctx).text.get('pack') ?? '';
    const url = await purchases.checkout(accountOf(ctx).id, pack);
    if (url === undefined) {
      const known = purchases.packs.map(({ id }) => id).join(', ');
      throw fail('malformed_request', {
        detail: `Expected pack to be one of ${known}, received "${excerpt(pack)}".`,
      });
    }
    ctx.body = { data: { url } };
  };
  const webhook: Middleware = async (ctx) => {
    const outcome = await purchases.receive(await readAll(ctx), ctx.get('Stripe-Signature'));
    ctx.state.notes.add({ purchase: outcome.outcome });
    if (outcome.outcome === 'unclaimed') {
      const { accountId: account, session } = outcome;
      const facts = { account, session, credits: formatCredits(outcome.credits) };
      logger.error(facts, 'purchase: paid after its account was deleted; refund it at Stripe');
    }
    if (outcome.outcome === 'refused') {
      throw fail('malformed_request', { detail: 'The signature of the event is missing, wrong or too old.' });
    }
    ctx.body = { received: true };
  };
  return [
    { method: 'GET', paths: ['/billing/packs'], handlers: [...before.key, list] },
    { method: 'POST', paths: ['/billing/checkout'], handlers: [...before.key, before.body, checkout] },
    { method: 'POST', paths: ['/billing/stripe'], handlers: [webhook] },
  ];
}

/** The bytes as they were signed: a parsed body would not do. */
async function readAll(ctx: Context): Promise<Buffer> {
  continueUpload(ctx.req, ctx.res);
  const chunks: Buffer[] = [];
  let size = 0;
  const source: IncomingMessage = ctx.req;
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false })) {
      const bytes = chunk as Buffer;
      size += bytes.length;
      if (size > eventBytes) break;
      chunks.push(bytes);
    }
  } catch (error) {
    throw fail('client_closed', { cause: error });
  }
  if (size > eventBytes) throw fail('malformed_request', { detail: 'The event is larger than 256 kB.' });
  return Buffer.concat(chunks);
}
