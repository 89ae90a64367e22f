import type { Account } from '../accounts/accounts.ts';
import type { Person, SignIns } from '../accounts/signIns.ts';
import type { QuarterCredits } from '../billing/price.ts';
import type { Transactional } from '../billing/transaction.ts';
import { inTransaction } from './command.ts';
import { postCredits } from './credits.ts';

interface SignInContext {
  readonly stores: Transactional;
  readonly signIns: SignIns;
  readonly address: string;
}

/** Given per person, not per account: a person who deleted an account and returns has had it. */
const signUpReference = 'first-sign-in';

/** The account of a person a provider vouches for; the first sign-in creates it, with its sign-up credits. */
export const signIn = (
  { stores, signIns, address }: SignInContext,
  {
    person,
    provider,
    signUpCredits,
  }: {
    readonly person: Person;
    readonly provider: string;
    readonly signUpCredits: QuarterCredits;
  },
): Promise<Account> =>
  stores.transaction(async (within) => {
    const { account, created } = await signIns.within(within.sql).accountOf(person);
    const context = { stores: within, actor: { id: account.id, address } };
    return inTransaction(context, async (transaction) => {
      if (created) await transaction.record({ action: 'account.create', subject: account.id });
      if (signUpCredits > 0 && !(await within.ledger.wasGiven(account.id, signUpReference)))
        await postCredits(transaction, account.id, {
          kind: 'grant',
          amount: signUpCredits,
          reference: signUpReference,
          note: 'first sign-in',
        });
      await transaction.record({ action: 'sign-in', detail: provider });
      return account;
    });
  });

/** Consumes a one-time link. Undefined if it is unknown, used or expired. */
export const signInByLink = (
  { stores, signIns, address }: SignInContext,
  token: string,
): Promise<Account | undefined> =>
  stores.transaction(async (within) => {
    const account = await signIns.within(within.sql).takeLink(token);
    if (account)
      await within.audit.write({
        action: 'sign-in',
        actor: account.id,
        detail: 'one-time link',
        address,
      });
    return account;
  });
