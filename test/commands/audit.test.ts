import test from 'ava';
import { SignIns } from '../../src/accounts/signIns.ts';
import { credits } from '../../src/billing/price.ts';
import { createAccount, createAccountWithKey, createKey, revokeKey } from '../../src/commands/accounts.ts';
import { bookPurchase, postCredits, refundCharge } from '../../src/commands/credits.ts';
import { ensureLocalAccount } from '../../src/commands/ensureLocalAccount.ts';
import { deleteImage, eraseAccount } from '../../src/commands/erase.ts';
import { signIn, signInByLink } from '../../src/commands/signIn.ts';
import { Improve } from '../../src/improve/improve.ts';
import { ImproveTable } from '../../src/store/improveTable.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';
import { breakAudit, contents } from '../support/audit.ts';
import {
  accountWith,
  type Cleanup,
  type NewPlace,
  noFreePreviews,
  sqlitePlace,
  testStores,
} from '../support/stores.ts';

async function world(t: Cleanup, place: NewPlace) {
  const stores = await testStores(t, noFreePreviews, place);
  const account = await accountWith(stores, 5);
  const key = await stores.accounts.createKey(account, 'laptop');
  const reserved = await stores.ledger.reserve(account, { requestId: 'r1', size: 'full' });
  await reserved.settle();
  await reserved.deliver();
  const objects = new Map<string, Uint8Array>();
  const improve = new Improve({
    table: new ImproveTable(stores.database),
    bucket: {
      put: async (name, bytes) => void objects.set(name, bytes),
      get: async (name) => {
        const bytes = objects.get(name);
        return bytes && Buffer.from(bytes);
      },
      delete: async (name) => void objects.delete(name),
    },
    perDay: 0,
    now: stores.clock.now,
  });
  const image = await improve.handIn({
    accountId: account,
    bytes: Buffer.from('image'),
    type: 'jpg',
    width: 4,
    height: 3,
  });
  const signIns = new SignIns(stores.database, stores.clock.now);
  return {
    stores,
    account,
    key: key.id,
    reservation: reserved.id,
    improve,
    objects,
    image,
    signIns,
    link: await signIns.createLink(account),
    /** As provided by a person in the console. */
    context: { stores, improve, actor: { id: account, address: '192.0.2.7' } },
    dataDir: stores.dataDir,
  };
}

type World = Awaited<ReturnType<typeof world>>;

const ann = { issuer: 'https://a.test', subject: 'ann', name: 'Ann', email: null };

interface Command {
  readonly run: (world: World) => Promise<unknown>;
  /** Actions of its events, oldest first. */
  readonly events: readonly string[];
  /** Its account, unless given otherwise; null: no account and no address. */
  readonly actor?: 'new account' | null;
  /** Further events of the same command. */
  readonly eventsAgain?: readonly string[];
}

const commands: Record<string, Command> = {
  'create an account': {
    run: ({ context }) => createAccount(context, 'Ada'),
    events: ['account.create'],
    eventsAgain: ['account.create'],
  },
  'create an account with key and credits': {
    run: ({ context }) => createAccountWithKey(context, { name: 'Ada', credits: credits(2) }),
    events: ['account.create', 'key.create', 'credits.grant'],
    eventsAgain: ['account.create', 'key.create', 'credits.grant'],
  },
  'erase an account': {
    run: ({ context, account }) => eraseAccount(context, account),
    events: ['account.delete'],
  },
  'create a key': {
    run: ({ context, account }) => createKey(context, account, 'phone'),
    events: ['key.create'],
    eventsAgain: ['key.create'],
  },
  'revoke a key': {
    run: ({ context, key }) => revokeKey(context, key),
    events: ['key.revoke'],
  },
  grant: {
    run: ({ context, account }) =>
      postCredits(context, account, { kind: 'grant', amount: credits(1), reference: 'r' }),
    events: ['credits.grant'],
  },
  adjust: {
    run: ({ context, account }) =>
      postCredits(context, account, { kind: 'adjust', amount: credits(-1), reference: 'r' }),
    events: ['credits.adjust'],
  },
  'adjust below 0': {
    run: ({ context, account }) => postCredits(context, account, { kind: 'adjust', amount: credits(-9) }),
    events: [],
  },
  refund: {
    run: ({ context, account, reservation }) => refundCharge(context, { accountId: account, reservation }),
    events: ['credits.refund'],
  },
  'delete an image': {
    run: ({ context, image }) => deleteImage(context, image),
    events: ['image.delete'],
  },
  purchase: {
    run: ({ stores, account }) =>
      bookPurchase(stores, { accountId: account, amount: credits(50), session: 'cs_1', event: 'evt_1' }),
    events: ['credits.purchase'],
    actor: null,
  },
  'local account': {
    run: ({ stores, dataDir }) => ensureLocalAccount({ stores, dataDir, grant: credits(9) }),
    events: ['account.create', 'key.create', 'credits.grant'],
    actor: null,
  },
  'first sign-in': {
    run: ({ stores, signIns }) =>
      signIn(
        { stores, signIns, address: '192.0.2.7' },
        { person: ann, provider: 'Company', signUpCredits: credits(3) },
      ),
    events: ['account.create', 'credits.grant', 'sign-in'],
    actor: 'new account',
    eventsAgain: ['sign-in'],
  },
  'sign-in by a link': {
    run: ({ stores, signIns, link }) => signInByLink({ stores, signIns, address: '192.0.2.7' }, link),
    events: ['sign-in'],
  },
};

function testCommands(database: string, place: NewPlace): void {
  for (const [name, { run, events, actor, eventsAgain = [] }] of Object.entries(commands)) {
    const written = async ({ stores }: World) => (await stores.audit.list({ limit: 99 })).toReversed();

    test(`${database}: ${name}: its audit events are written once, with the actor`, async (t) => {
      const made = await world(t, place);
      t.deepEqual(await written(made), []);
      await run(made);
      const found = await written(made);
      t.deepEqual(
        found.map(({ action }) => action),
        events,
      );
      const by = actor === 'new account' ? found[0]?.subject : actor === null ? null : made.account;
      for (const event of found) {
        t.is(event.actor, by ?? null);
        t.is(event.address, actor === null ? null : '192.0.2.7');
        t.is(event.at, made.stores.clock.at);
      }
      await run(made);
      t.deepEqual(
        (await written(made)).slice(events.length).map(({ action }) => action),
        eventsAgain,
      );
      t.deepEqual(await made.stores.ledger.verify(), []);
    });

    if (events.length > 0)
      test(`${database}: ${name}: without its audit events nothing happens; a later attempt does everything`, async (t) => {
        const made = await world(t, place);
        const before = await contents(made.stores.database);
        const mend = await breakAudit(made.stores);
        await t.throwsAsync(run(made), { code: 'STORE_UNAVAILABLE' });
        t.deepEqual(await contents(made.stores.database), before);
        t.is(made.objects.size, 1);
        await mend();
        await run(made);
        t.deepEqual(
          (await written(made)).map(({ action }) => action),
          events,
        );
        t.notDeepEqual(await contents(made.stores.database), before);
        t.deepEqual(await made.stores.ledger.verify(), []);
      });
  }

  test(`${database}: an event that cannot be written rolls back the earlier ones`, async (t) => {
    const made = await world(t, place);
    const before = await contents(made.stores.database);
    await t.throwsAsync(
      made.stores.transaction(async (within) => {
        await createAccountWithKey(
          { stores: within, actor: { id: null } },
          { name: 'Ada', credits: credits(1) },
        );
        throw new Error('at the end');
      }),
      { message: 'at the end' },
    );
    t.deepEqual(await contents(made.stores.database), before);
  });

  test(`${database}: images of an erased account are gone although the bucket failed at first`, async (t) => {
    const { stores, account, context, objects } = await world(t, place);
    let broken = true;
    const improve = new Improve({
      table: new ImproveTable(stores.database),
      bucket: {
        put: async () => {},
        get: async () => undefined,
        delete: async (name) => {
          if (broken) throw new Error('no bucket');
          objects.delete(name);
        },
      },
      perDay: 0,
      now: stores.clock.now,
    });
    await eraseAccount({ ...context, improve }, account);
    t.deepEqual(await improve.list(), []);
    t.is(objects.size, 1);
    broken = false;
    stores.clock.forward(600_001);
    t.is(await improve.sweep(), 1);
    t.is(objects.size, 0);
  });
}

testCommands('SQLite', sqlitePlace);
if (postgresMissing) test.skip(postgresMissing, () => {});
else {
  testCommands('PostgreSQL', postgresPlace);
  test.after.always(removePostgres);
}
