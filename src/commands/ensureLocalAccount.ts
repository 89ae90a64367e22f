import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Account, Accounts } from '../accounts/accounts.ts';
import { newKey } from '../accounts/keyFormat.ts';
import type { QuarterCredits } from '../billing/price.ts';
import type { Stores } from '../billing/stores.ts';
import { messageOf } from '../errors.ts';
import { codeOf, writeAtomically } from '../files.ts';
import { makeFolder } from '../folder.ts';
import { StoreError } from '../store/error.ts';
import { inTransaction } from './command.ts';
import { postCredits } from './credits.ts';

interface LocalAccountOptions {
  readonly stores: Pick<Stores, 'accounts' | 'transaction'>;
  readonly dataDir: string;
  /** CUTOUT_API_KEY: becomes the key at the first start, and only then. */
  readonly givenKey?: string | undefined;
  /** Credits granted at the first start; 0: none. */
  readonly grant: QuarterCredits;
}

export interface LocalAccount {
  readonly account: Account;
  /** A valid key, for the owner only; undefined if the owner revoked the stored one. */
  readonly key: string | undefined;
  readonly created: boolean;
  /** The given key is not one of this account: it was set after the first start. */
  readonly givenKeyIgnored: boolean;
}

/** The account of the person who installed the program; its id is fixed, so that every start finds it. */
export const localAccountId = 'local';

/**
 * Creates the local account with a key and a grant at the first start, in one transaction; later starts find
 * them. Completed steps are skipped, so a start completes one that was interrupted. The key is kept in
 * `<dataDir>/local-key`, readable by its owner only; a missing folder is made. Throws UserError if
 * file or folder cannot be written, StoreError else.
 */
export async function ensureLocalAccount(options: LocalAccountOptions): Promise<LocalAccount> {
  const { stores, dataDir, givenKey, grant } = options;
  const { accounts } = stores;
  const file = path.join(dataDir, 'local-key');
  const kept = readKey(file);
  const isNew = (await accounts.find(localAccountId)) === undefined;

  // Another node, or this one before its folder was lost, may have created the account with the same key.
  const known = givenKey !== undefined && (await belongs(accounts, givenKey)) ? givenKey : undefined;
  let key = isNew ? (givenKey ?? kept ?? newKey()) : (kept ?? known ?? newKey());
  // The file is written first: a key that is valid and readable nowhere would be worse than one that is not
  // valid yet.
  if (key !== kept) await writeKey(dataDir, file, key);
  const { account, created } = await inTransaction({ stores, actor: { id: null } }, async (tx) => {
    const made = await tx.stores.accounts.createOnce('Local account', localAccountId);
    if (made.created) await tx.record({ action: 'account.create', subject: localAccountId });
    const added = await tx.stores.accounts.addKey(localAccountId, 'local', key);
    if (added) await tx.record({ action: 'key.create', subject: added.id });
    const reference = 'first-start';
    if (grant > 0 && !(await tx.stores.ledger.wasGiven(localAccountId, reference)))
      await postCredits(tx, localAccountId, { kind: 'grant', amount: grant, reference, note: 'first start' });
    return made;
  });

  if (givenKey !== undefined && (await belongs(accounts, givenKey))) key = givenKey;
  return {
    account,
    key: (await belongs(accounts, key)) ? key : undefined,
    created,
    givenKeyIgnored: givenKey !== undefined && givenKey !== key,
  };
}

const belongs = async (accounts: Accounts, key: string) => (await accounts.owner(key))?.id === localAccountId;

async function writeKey(dataDir: string, file: string, key: string): Promise<void> {
  makeFolder('data folder', dataDir, 0o700);
  try {
    await writeAtomically(file, `${key}\n`, 'replaceDurably', { mode: 0o600 });
  } catch (error) {
    throw new StoreError(
      'STORE_OPEN',
      `The key of the local account cannot be kept in ${file}: ${messageOf(error)}. Make the data folder writable, or choose another one (CUTOUT_DATA_DIR).`,
      { cause: error },
    );
  }
}

function readKey(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
