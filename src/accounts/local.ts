import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Ledger } from '../billing/ledger.ts';
import type { QuarterCredits } from '../billing/price.ts';
import type { Account, Accounts } from './accounts.ts';
import { newKey } from './keys.ts';
import { writeSecretFile } from './secretFile.ts';

export interface LocalAccountOptions {
  readonly accounts: Accounts;
  readonly ledger: Ledger;
  readonly dataDir: string;
  /** CUTOUT_API_KEY: becomes the key on the first start, and only then. */
  readonly givenKey?: string | undefined;
  /** Credits of the first start; 0 = none. */
  readonly grant: QuarterCredits;
}

export interface LocalAccount {
  readonly account: Account;
  /** A key that works, for the owner's eyes; undefined when the owner revoked the one that was kept. */
  readonly key: string | undefined;
  readonly created: boolean;
  /** A key was given that is not one of this account: it was set after the first start. */
  readonly givenKeyIgnored: boolean;
}

/** The account of who installed the program: fixed, so that every start finds it again. */
export const localAccountId = 'local';

/**
 * On the first start makes the local account with a key and a grant; later finds them. Each step is skipped
 * when it is done, so a start that was cut off is completed by the next. The key is kept in
 * `<dataDir>/local-key`, readable by its owner only. Throws StoreError.
 */
export async function ensureLocalAccount(options: LocalAccountOptions): Promise<LocalAccount> {
  const { accounts, ledger, dataDir, givenKey, grant } = options;
  const file = path.join(dataDir, 'local-key');
  const kept = readKey(file);
  const created = (await accounts.find(localAccountId)) === undefined;

  // Another node, or this one before its folder was lost, may have made the account with the same key.
  const known = givenKey !== undefined && (await belongs(accounts, givenKey)) ? givenKey : undefined;
  let key = created ? (givenKey ?? kept ?? newKey()) : (kept ?? known ?? newKey());
  // The file first: a key that is in use and nowhere readable would be worse than one that is not yet in use.
  if (key !== kept) writeSecretFile(file, key);
  const account = await accounts.create('Local account', localAccountId);
  await accounts.addKey(localAccountId, 'local', key);
  if (grant > 0 && !(await ledger.hasReference(localAccountId, 'grant', 'first-start'))) {
    await ledger.post(localAccountId, {
      kind: 'grant',
      amount: grant,
      reference: 'first-start',
      note: 'first start',
    });
  }

  if (givenKey !== undefined && (await belongs(accounts, givenKey))) key = givenKey;
  return {
    account,
    key: (await belongs(accounts, key)) ? key : undefined,
    created,
    givenKeyIgnored: givenKey !== undefined && givenKey !== key,
  };
}

const belongs = async (accounts: Accounts, key: string) => (await accounts.owner(key))?.id === localAccountId;

function readKey(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
