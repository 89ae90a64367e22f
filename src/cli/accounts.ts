import { Command, InvalidArgumentError } from 'commander';
import type { Span } from '../billing/entries.ts';
import type { PostRequest } from '../billing/postings.ts';
import { accountRow, entryRow, keyRow, usageRow } from '../billing/present.ts';
import { creditSteps, formatCredits, parseCredits, type QuarterCredits, quarters } from '../billing/price.ts';
import type { Stores } from '../billing/stores.ts';
import { createAccountWithKey, createKey, revokeKey } from '../commands/accounts.ts';
import type { CommandContext } from '../commands/command.ts';
import { postCredits, refundCharge } from '../commands/credits.ts';
import { StoreError } from '../store/error.ts';
import { formatOption, type ListFormat, render, using, withPeriod } from './listing.ts';

interface AccountsCommandDependencies {
  /** Opens the stores for one command; they are closed when the command ends. */
  readonly open: () => Promise<Stores>;
  readonly out: { write(text: string): unknown };
}

/** What the commands share: `using` opens the stores for some work; `ofAccount` also finds the account that is named. */
const accessTo = ({ open, out }: AccountsCommandDependencies) => {
  const usingStores = (work: (stores: Stores) => Promise<void>) => using(open(), work);
  return {
    out,
    using: usingStores,
    ofAccount: (idOrName: string, work: (id: string, stores: Stores) => Promise<void>) =>
      usingStores(async (stores) => work((await stores.accounts.resolve(idOrName)).id, stores)),
  };
};

type Access = ReturnType<typeof accessTo>;

/** An operator at the machine. */
const by = (stores: Stores): CommandContext => ({ stores, actor: { id: null } });

/** Books credits and says what the balance is then. */
const post = ({ out, ofAccount }: Access, idOrName: string, request: PostRequest): Promise<void> =>
  ofAccount(idOrName, async (id, stores) => {
    const { outcome, balance } = await postCredits(by(stores), id, request);
    const rest = `the balance of ${id} is ${formatCredits(balance)}`;
    if (outcome === 'insufficient') throw new StoreError('STORE_BALANCE', `Not enough credits: ${rest}.`);
    out.write(outcome === 'duplicate' ? `Already done, nothing changed: ${rest}.\n` : `Done: ${rest}.\n`);
  });

function amountArgument(text: string): QuarterCredits {
  const amount = parseCredits(text);
  if (amount === undefined) throw new InvalidArgumentError(`Expected ${creditSteps}, e.g. 10 or 0.75.`);
  return amount;
}

function wholeArgument(text: string): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

function accountsCommand(access: Access): Command {
  const accounts = new Command('accounts').description('accounts: list, create');
  accounts
    .command('list')
    .description('list all accounts with their balances')
    .addOption(formatOption())
    .action(({ format }: { format: ListFormat }) =>
      access.using(async (stores) => {
        const newestFirst = await stores.ledger.listBalances();
        access.out.write(render(newestFirst.toReversed().map(accountRow), format));
      }),
    );
  accounts
    .command('create')
    .description('create an account with its first key, which is shown only once')
    .argument('<name>', 'display name; need not be unique')
    .option('--credits <amount>', 'initial credits', amountArgument)
    .action((name: string, { credits = quarters(0) }: { credits?: QuarterCredits }) =>
      access.using(async (stores) => {
        if (credits < 0)
          throw new StoreError('STORE_BALANCE', 'The initial credits of an account must be 0 or more.');
        const { account, key } = await createAccountWithKey(by(stores), { name, credits });
        access.out.write(`account ${account.id}\nkey     ${key.key}\n`);
      }),
    );
  return accounts;
}

function keysCommand(access: Access): Command {
  const keys = new Command('keys').description('API keys: list, create, revoke');
  keys
    .command('list')
    .description('list the keys of an account; only their first characters are shown')
    .argument('<account>')
    .addOption(formatOption())
    .action((account: string, { format }: { format: ListFormat }) =>
      access.ofAccount(account, async (id, { accounts }) => {
        access.out.write(render((await accounts.keys(id)).map(keyRow), format));
      }),
    );
  keys
    .command('create')
    .description('create another key, which is shown only once')
    .argument('<account>')
    .option('--label <text>', 'what it is for', '')
    .action((account: string, { label }: { label: string }) =>
      access.ofAccount(account, async (owner, stores) => {
        const { id, key } = await createKey(by(stores), owner, label);
        access.out.write(`id  ${id}\nkey ${key}\n`);
      }),
    );
  keys
    .command('revoke')
    .description('revoke a key; a running server refuses it at once')
    .argument('<key-id>', 'from `cutout keys list`')
    .action((id: string) =>
      access.using(async (stores) => {
        if (!(await revokeKey(by(stores), id))) {
          throw new StoreError('STORE_UNKNOWN_KEY', `There is no active key ${id}.`);
        }
        access.out.write(`Key ${id} is revoked.\n`);
      }),
    );
  return keys;
}

function grantCommand(access: Access): Command {
  return new Command('grant')
    .description('give credits to an account')
    .argument('<account>')
    .argument('<amount>', creditSteps, amountArgument)
    .option('--reference <text>', 'external reference; the same one is booked once')
    .option('--note <text>')
    .action((account: string, amount: QuarterCredits, options: { reference?: string; note?: string }) => {
      const more = 'A grant must be more than 0 credits; to take credits away, use `credits adjust`.';
      if (amount <= 0) throw new StoreError('STORE_BALANCE', more);
      return post(access, account, { kind: 'grant', amount, ...options });
    });
}

function adjustCommand(access: Access): Command {
  return new Command('adjust')
    .description('correct a balance, up or down, never below 0; a reason is required')
    .argument('<account>')
    .argument('<amount>', `${creditSteps}; to take credits away, write for example \`-- -2\``, amountArgument)
    .requiredOption('--note <text>', 'why')
    .option('--reference <text>', 'external reference; the same one is booked once')
    .action((account: string, amount: QuarterCredits, options: { reference?: string; note: string }) => {
      if (amount === 0) throw new StoreError('STORE_BALANCE', 'An adjustment of 0 credits changes nothing.');
      return post(access, account, { kind: 'adjust', amount, ...options });
    });
}

function refundCommand(access: Access): Command {
  return new Command('refund')
    .description('refund the charge of one call')
    .argument('<account>')
    .argument('<reservation>', 'id of the reserve entry in the statement', wholeArgument)
    .option('--note <text>', 'why')
    .action((account: string, reservation: number, { note }: { note?: string }) =>
      access.ofAccount(account, async (id, stores) => {
        const done = await refundCharge(by(stores), { accountId: id, reservation, note });
        const balance = formatCredits((await stores.ledger.balance(id)).credits);
        access.out.write(`${done ? 'Done' : 'Already refunded'}: the balance of ${id} is ${balance}.\n`);
      }),
    );
}

function statementCommand(access: Access): Command {
  return withPeriod(new Command('statement'))
    .description('list every entry of an account, oldest first')
    .argument('<account>')
    .addOption(formatOption())
    .action((account: string, options: Span & { format: ListFormat }) =>
      access.ofAccount(account, async (id, { ledger }) => {
        access.out.write(render((await ledger.statement(id, options)).map(entryRow), options.format));
      }),
    );
}

function verifyCommand(access: Access): Command {
  return new Command('verify').description('recompute every balance from its entries').action(() =>
    access.using(async ({ ledger }) => {
      const wrong = await ledger.verify();
      if (wrong.length > 0) throw new StoreError('STORE_CONTRADICTION', wrong.join('\n'));
      access.out.write('The ledger is consistent.\n');
    }),
  );
}

function creditsCommand(access: Access): Command {
  const credits = new Command('credits').description('credits: grant, adjust, refund, statement, verify');
  for (const command of [grantCommand, adjustCommand, refundCommand, statementCommand, verifyCommand])
    credits.addCommand(command(access));
  return credits;
}

function usageCommand(access: Access): Command {
  return withPeriod(new Command('usage'))
    .description('charged calls by day, account and payment')
    .argument('[account]', 'one account (default: all)')
    .addOption(formatOption())
    .action((account: string | undefined, options: Span & { format: ListFormat }) =>
      access.using(async (stores) => {
        const owner = account === undefined ? undefined : await stores.accounts.resolve(account);
        const rows = await stores.ledger.usage(options, owner?.id);
        access.out.write(render(rows.map(usageRow), options.format));
      }),
    );
}

/**
 * `cutout accounts | keys | credits | usage`, with or without a running server. An account is given by its
 * id, or by its name if that is unique. Actions reject with StoreError, one sentence for the operator.
 */
export function accountsCommands(dependencies: AccountsCommandDependencies): Command[] {
  const access = accessTo(dependencies);
  return [accountsCommand, keysCommand, creditsCommand, usageCommand].map((command) => command(access));
}
