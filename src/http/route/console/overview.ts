import type { UsageRow } from '../../../billing/entries.ts';
import type { Ledger } from '../../../billing/ledger.ts';
import { isoTime } from '../../../billing/present.ts';
import { quarters, toCredits } from '../../../billing/price.ts';
import type { Context } from '../../context.ts';
import { ownTurn } from '../../eventLoop.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { Overview } from './api.ts';

const daysShown = 30;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Milliseconds of queries before the event loop gets a turn. */
const queriesMs = 5;

/** The usage of an account since `from`, counted hour by hour: in a month it may have made millions of calls. */
async function usageSince(
  ledger: Pick<Ledger, 'usage'>,
  accountId: string,
  from: number,
  now: number,
): Promise<readonly UsageRow[]> {
  const rows: UsageRow[] = [];
  let turned = performance.now();
  for (let at = from; at <= now; at += hourMs) {
    rows.push(...(await ledger.usage({ from: at, to: at + hourMs }, accountId)));
    if (performance.now() - turned < queriesMs) continue;
    await ownTurn();
    turned = performance.now();
  }
  return rows;
}

/** One row per UTC day from `from` to the day of `now`, both included, also without calls. */
function usageDays(rows: readonly UsageRow[], from: number, now: number): Overview['days'] {
  const days: Overview['days'][number][] = [];
  for (let at = from; at <= now; at += dayMs) {
    const day = isoTime(at).slice(0, 10);
    const of = rows.filter((row) => row.day === day);
    const calls = (payment: UsageRow['payment']) =>
      of.filter((row) => row.payment === payment).reduce((sum, row) => sum + row.calls, 0);
    const toReview = of.reduce((sum, row) => sum + row.toReview, 0);
    const credits = toCredits(quarters(of.reduce((sum, row) => sum + row.credits, 0)));
    const [free, preview, full] = [calls('free'), calls('preview'), calls('full')];
    days.push({ day, free, preview, full, toReview, credits });
  }
  return days;
}

/** The account's balance, and its calls of the last days. */
export function overviewRoutes({ stores, rate, billing }: ConsoleParts, { owner }: Endpoints): Route[] {
  const { ledger } = stores;
  const overview = async (ctx: Context): Promise<Overview> => {
    const id = accountIdOf(ctx);
    const now = Date.now();
    const from = now - (now % dayMs) - (daysShown - 1) * dayMs;
    const { credits } = await ledger.balance(id);
    const { limit, remaining, retryAfter } = await rate.state(id);
    return {
      credits: toCredits(credits),
      free: { ...(await ledger.freePreviews(id)), ...billing.freePreviews },
      days: usageDays(await usageSince(ledger, id, from, now), from, now),
      rate: rate.limited
        ? { limit, remaining, resetSeconds: retryAfter }
        : { limit: null, remaining: null, resetSeconds: 0 },
    };
  };
  return [owner.get('overview', overview)];
}
