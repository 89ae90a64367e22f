import test from 'ava';
import { Command } from 'commander';
import { hashKey } from '../../src/accounts/keyFormat.ts';
import { credits, standardBilling } from '../../src/billing/price.ts';
import { openStores } from '../../src/billing/stores.ts';
import { accountsCommands } from '../../src/cli/accounts.ts';
import { breakAudit, contents } from '../support/audit.ts';
import { type Cleanup, TestClock, testFolder } from '../support/stores.ts';

/** The command line over stores of its own. Fails as the real one: with a message and without output. */
function commandLine(t: Cleanup) {
  const dataDir = testFolder(t);
  const clock = new TestClock();
  const open = () => openStores({ dataDir, billing: standardBilling, now: clock.now });
  const run = async (...args: string[]): Promise<string> => {
    let printed = '';
    const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
    const silent = (command: Command): Command => {
      command.exitOverride().configureOutput({ writeErr: () => {} });
      for (const inner of command.commands) silent(inner);
      return command;
    };
    for (const command of accountsCommands({ open, out: { write: (text: string) => (printed += text) } })) {
      program.addCommand(silent(command));
    }
    await program.parseAsync(args, { from: 'user' });
    return printed;
  };
  return { run, open, clock };
}

async function withAda(t: Cleanup) {
  const line = commandLine(t);
  const created = await line.run('accounts', 'create', 'Ada', '--credits', '10');
  const [, id = '', key = ''] = /^account (acc_\w+)\nkey {5}(cutout_\w+)\n$/.exec(created) ?? [];
  return { ...line, id, key };
}

test('a new account has a key that works and its credits', async (t) => {
  const { run, open, id, key } = await withAda(t);
  const stores = await open();
  t.is((await stores.accounts.authenticate(hashKey(key)))?.id, id);
  await stores.close();
  const [account] = JSON.parse(await run('accounts', 'list', '--format', 'json'));
  t.deepEqual(account, {
    id,
    name: 'Ada',
    created: '2026-11-21T12:00:00.000Z',
    credits: '10',
    free_calls: 50,
  });
});

test('an account is found by its name if that is unique', async (t) => {
  const { run, id } = await withAda(t);
  t.is(await run('credits', 'grant', 'Ada', '0.75'), `Done: the balance of ${id} is 10.75.\n`);
  await run('accounts', 'create', 'Ada');
  await t.throwsAsync(run('credits', 'grant', 'Ada', '1'), { message: /2 accounts are named Ada/ });
  t.is(await run('credits', 'grant', id, '1'), `Done: the balance of ${id} is 11.75.\n`);
  await t.throwsAsync(run('keys', 'list', 'Bob'), { message: 'There is no account Bob.' });
});

test('keys are created, listed by their prefix and revoked', async (t) => {
  const { run, open, key } = await withAda(t);
  const [, id = '', second = ''] =
    /^id {2}(key_\w+)\nkey (cutout_\w+)\n$/.exec(await run('keys', 'create', 'Ada', '--label', 'shop')) ?? [];
  const listed = await run('keys', 'list', 'Ada');
  t.regex(listed, /^ID +PREFIX +LABEL +CREATED/);
  t.true(listed.includes(second.slice(0, 11)) && listed.includes('shop'));
  t.false(listed.includes(second) || listed.includes(key));
  t.is(await run('keys', 'revoke', id), `Key ${id} is revoked.\n`);
  await t.throwsAsync(run('keys', 'revoke', id), { message: /no active key/ });
  const stores = await open();
  t.is(await stores.accounts.authenticate(hashKey(second)), undefined);
  t.truthy(await stores.accounts.authenticate(hashKey(key)));
  await stores.close();
});

test('the same reference counts once', async (t) => {
  const { run, id } = await withAda(t);
  await run('credits', 'grant', 'Ada', '5', '--reference', 'invoice 7');
  t.is(
    await run('credits', 'grant', 'Ada', '5', '--reference', 'invoice 7'),
    `Already done, nothing changed: the balance of ${id} is 15.\n`,
  );
});

test('an adjustment needs a reason and cannot exceed the balance', async (t) => {
  const { run, id } = await withAda(t);
  await t.throwsAsync(run('credits', 'adjust', 'Ada', '1'), { message: /--note/ });
  t.is(
    await run('credits', 'adjust', '--note', 'twice granted', '--', 'Ada', '-4.5'),
    `Done: the balance of ${id} is 5.5.\n`,
  );
  await t.throwsAsync(run('credits', 'adjust', '--note', 'x', '--', 'Ada', '-6'), {
    message: `Not enough credits: the balance of ${id} is 5.5.`,
  });
});

for (const amount of ['0.1', 'ten', '1e3', '']) {
  test(`'${amount}' is refused as an amount`, async (t) => {
    const { run } = await withAda(t);
    await t.throwsAsync(run('credits', 'grant', 'Ada', amount), { message: /steps of 0\.25/ });
  });
}

test('a charged call is refunded once, an open or released one never', async (t) => {
  const { run, open, id } = await withAda(t);
  const stores = await open();
  const charged = await stores.ledger.reserve(id, { size: 'full', requestId: 'r1' });
  const released = await stores.ledger.reserve(id, { size: 'full', requestId: 'r2' });
  await charged.settle();
  await released.release();
  const refund = (reservation: number) => run('credits', 'refund', 'Ada', String(reservation));
  t.is(await refund(charged.id), `Done: the balance of ${id} is 10.\n`);
  t.is(await refund(charged.id), `Already refunded: the balance of ${id} is 10.\n`);
  await t.throwsAsync(refund(released.id), { message: /was not charged/ });
  await t.throwsAsync(refund(999), { message: /no reservation 999/ });
  t.deepEqual(await stores.ledger.verify(), []);
  t.deepEqual(await stores.ledger.usage(), []);
  await stores.close();
});

test('the statement as table, CSV and JSON, and bounded by days', async (t) => {
  const { run, open, clock, id } = await withAda(t);
  clock.set('2026-11-22T00:00:00Z');
  const stores = await open();
  await stores.ledger.post(id, {
    kind: 'purchase',
    amount: credits(50),
    reference: 'evt',
    note: '=HYPERLINK("x"), "y"',
  });
  await stores.close();
  const table = await run('credits', 'statement', 'Ada');
  t.deepEqual(
    table.split('\n').map((row) => row.split(/ +/).slice(1, 5)),
    [
      ['TIME', 'KIND', 'AMOUNT', 'BALANCE'],
      ['2026-11-21T12:00:00.000Z', 'grant', '10', '10'],
      ['2026-11-22T00:00:00.000Z', 'purchase', '50', '60'],
      [],
    ],
  );
  const csv = await run('credits', 'statement', 'Ada', '--format', 'csv', '--from', '2026-11-22');
  t.is(
    csv,
    'id,time,kind,amount,balance,payment,reservation,request,reference,note,uncertainty\r\n' +
      `2,2026-11-22T00:00:00.000Z,purchase,50,60,,,,evt,"'=HYPERLINK(""x""), ""y""",\r\n`,
  );
  const json = JSON.parse(await run('credits', 'statement', 'Ada', '--format', 'json', '--to', '2026-11-22'));
  t.deepEqual(
    json.map(({ kind, amount }: { kind: string; amount: string }) => [kind, amount]),
    [['grant', '10']],
  );
  await t.throwsAsync(run('credits', 'statement', 'Ada', '--from', 'yesterday'), { message: /UTC day/ });
});

test('usage counts charged calls by day, account and payment', async (t) => {
  const { run, open, clock, id } = await withAda(t);
  const stores = await open();
  for (const [day, size] of [
    ['2026-11-20', 'full'],
    ['2026-11-21', 'preview'],
    ['2026-11-21', 'full'],
    ['2026-11-21', 'full'],
  ] as const) {
    clock.set(`${day}T10:00:00Z`);
    await (await stores.ledger.reserve(id, { size, requestId: 'r' })).settle(0.6);
  }
  await stores.close();
  t.is(
    await run('usage', '--format', 'csv'),
    'day,account,payment,calls,credits,to_review\r\n' +
      `2026-11-20,${id},full,1,1,1\r\n2026-11-21,${id},free,1,0,1\r\n2026-11-21,${id},full,2,2,2\r\n`,
  );
  t.is(await run('usage', 'Ada', '--from', '2026-11-22'), '(none)\n');
});

test('verify reports a correct ledger, or its errors', async (t) => {
  const { run, open } = await withAda(t);
  t.is(await run('credits', 'verify'), 'The ledger is consistent.\n');
  const stores = await open();
  await stores.database.run('UPDATE account SET balance = balance + 1');
  await stores.close();
  await t.throwsAsync(run('credits', 'verify'), { message: /^The balance of account acc_\w+ is 41/ });
});

test('commands are recorded in the audit log', async (t) => {
  const { run, open, id } = await withAda(t);
  await run('credits', 'adjust', id, '--note', 'broken', '--', '-0.5');
  const made = await run('keys', 'create', id);
  const key = /^id {2}(\w+)/.exec(made)?.[1] ?? '';
  await run('keys', 'revoke', key);
  const stores = await open();
  const first = (await stores.accounts.keys(id)).find(({ label }) => label === 'first')?.id ?? '';
  t.deepEqual(
    (await stores.audit.list({ limit: 9 })).map(({ actor, action, subject, detail }) => [
      actor,
      action,
      subject,
      detail,
    ]),
    [
      [null, 'key.revoke', key, null],
      [null, 'key.create', key, null],
      [null, 'credits.adjust', id, '-0.5: broken'],
      [null, 'credits.grant', id, '10: account created'],
      [null, 'key.create', first, null],
      [null, 'account.create', id, null],
    ],
  );
  await t.throwsAsync(stores.database.run('DELETE FROM audit'), { any: true, message: /append-only/ });
  await t.throwsAsync(stores.database.run("UPDATE audit SET detail = 'x'"), {
    any: true,
    message: /append-only/,
  });
  await stores.close();
});

test('a command whose audit event cannot be written has no effect and reports that', async (t) => {
  const { run, open, id } = await withAda(t);
  const stores = await open();
  t.teardown(stores.close);
  const [key] = await stores.accounts.keys(id);
  const reserved = await stores.ledger.reserve(id, { requestId: 'r1', size: 'full' });
  await reserved.settle();
  await reserved.deliver();
  const commands = [
    ['accounts', 'create', 'Bob', '--credits', '3'],
    ['keys', 'create', id],
    ['keys', 'revoke', key?.id ?? ''],
    ['credits', 'grant', id, '1', '--reference', 'r'],
    ['credits', 'adjust', id, '--note', 'broken', '--', '-0.5'],
    ['credits', 'refund', id, String(reserved.id)],
  ];
  const mend = await breakAudit(stores);
  const before = await contents(stores.database);
  for (const command of commands) {
    await t.throwsAsync(run(...command), { code: 'STORE_UNAVAILABLE', message: /^Nothing was done: / });
    t.deepEqual(await contents(stores.database), before, command.join(' '));
  }
  await mend();
  for (const command of commands) await run(...command);
  const events = (await stores.audit.list({ limit: 99 })).map(({ action }) => action);
  t.deepEqual(events.toReversed().slice(before['audit']?.length), [
    'account.create',
    'key.create',
    'credits.grant',
    'key.create',
    'key.revoke',
    'credits.grant',
    'credits.adjust',
    'credits.refund',
  ]);
});
