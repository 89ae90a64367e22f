import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { freePort } from '../../bench/lib/freePort.ts';
import { Provider } from '../../src/accounts/oidc.ts';
import { credits } from '../../src/billing/price.ts';
import {
  accessibility,
  chromiumMissing,
  closeChromium,
  openWindow,
  overflows,
  screenshot,
} from '../fixtures/chromium.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { startOidc } from '../fixtures/oidc.ts';
import { form, type Service, type ServiceOptions, startService } from '../fixtures/service.ts';

/** One window at a time: all at once wait for each other until a page's load takes too long. */
const web = unless(chromiumMissing, test.serial);
test.after.always(closeChromium);

/** A console opened through a one-time link. */
async function open(
  t: ExecutionContext,
  options: ServiceOptions = {},
  size: Parameters<typeof openWindow>[1] = {},
) {
  const service = await startService(t, { ...options });
  const window = await openWindow(t, size);
  const link = await service.signIns.createLink(service.accountId);
  await window.page.goto(`${service.url}/console#${link}`);
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  return { service, link, ...window };
}

const call = async ({ url }: Service, key: string, size = 'full') =>
  fetch(`${url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: await scene({ width: 900, height: 700 }), size }),
  });

const go = async (page: Page, name: string) => {
  await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
};

web(
  'sign in at a provider, make a key, call the API, watch balance and statement, revoke, sign out',
  async (t) => {
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const redirectUrl = `${publicUrl}/sign-in/1/callback`;
    const oidc = await startOidc(t, { redirectUrl, returnUrl: `${publicUrl}/console` });
    const provider = new Provider({
      id: '1',
      name: 'Company',
      issuer: oidc.issuer,
      clientId: oidc.clientId,
      clientSecret: oidc.clientSecret,
      redirectUrl,
      operatorClaim: undefined,
      operators: [],
    });
    const service = await startService(t, {
      port,
      publicUrl,
      providers: [provider],
      signUpCredits: 5,
    });
    const { page, complaints } = await openWindow(t);
    await page.goto(`${service.url}/console`);
    await page.getByRole('link', { name: 'Sign in with Company' }).click();
    await page.locator('input[name=login]').fill('ann');
    await page.locator('input[name=password]').fill('x');
    await page.locator('button[type=submit]').click();
    await page.locator('button[type=submit]').click();
    await page.getByText('ann@people.test').waitFor();
    t.is(await page.getByTestId('credits').textContent(), '5');

    await go(page, 'Keys');
    await page.getByLabel('Name of a new key').fill('<b>My program</b>');
    await page.getByRole('button', { name: 'Create key' }).click();
    const key = (await page.getByTestId('new-key').textContent())?.trim() ?? '';
    const answer = await call(service, key);
    t.is(answer.status, 200);
    t.is(await page.locator('td b').count(), 0, 'the name is text');

    await go(page, 'Overview');
    // Not by waitForFunction: the page's Content Security Policy forbids what it evaluates a second time.
    await page.getByTestId('credits').getByText('4', { exact: true }).waitFor();
    await go(page, 'Statement');
    await page.getByTestId('statement').getByText('Call charged').waitFor();
    const rows = await page.getByTestId('statement').locator('tbody tr').count();
    t.is(rows, 3);

    await go(page, 'Keys');
    t.is(await page.getByTestId('new-key').count(), 0, 'shown once');
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText(/^revoked /).waitFor();
    t.is((await call(service, key)).status, 403);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('button[name=logout]').click();
    await page.getByRole('link', { name: 'Sign in with Company' }).waitFor();
    t.deepEqual(
      complaints.filter((each) => each.includes(service.url)),
      [],
    );
  },
);

web('a one-time link leaves no trace in the address and opens nothing twice', async (t) => {
  const { page, service, link } = await open(t);
  t.false(page.url().includes(link));
  const other = await openWindow(t);
  await other.page.goto(`${service.url}/console#${link}`);
  await other.page.getByText('This link was already used or has expired.').waitFor();
  t.true(await other.page.getByText('npx cutout console').isVisible());
});

web('an unavailable provider leads to a page that says so', async (t) => {
  const { page } = await openWindow(t);
  const service = await startService(t);
  await page.goto(`${service.url}/console?problem=provider-down`);
  await page.getByText('The provider cannot be reached.').waitFor();
  t.deepEqual(await accessibility(page), []);
  await screenshot(page, 'sign-in-light');
});

web('a signed-in visitor gets a key for the playground', async (t) => {
  const { page, service } = await open(t);
  await page.goto(service.url);
  await page.getByText('You are signed in').waitFor({ state: 'attached' });
  t.is((await service.stores.accounts.keys(service.accountId)).length, 1, 'not before it is needed');
  const photo = { name: 'photo.jpg', mimeType: 'image/jpeg', buffer: await scene() };
  await page.getByLabel(/^Choose a/).setInputFiles(photo);
  await page.getByTestId('charged').waitFor();
  await page.getByLabel(/^Choose a/).setInputFiles({ ...photo, name: 'next.jpg' });
  await page.locator('[data-testid=download][download^="next-"]').waitFor();
  t.is((await service.stores.accounts.keys(service.accountId)).length, 2, 'one for the tab');
});

web('operators grant credits and find the event in the audit log', async (t) => {
  const { page, service } = await open(t);
  await service.stores.accounts.create('Somebody <i>else</i>');
  await go(page, 'All accounts');
  await page.getByLabel('Search by name, e-mail or id').fill('somebody');
  await page.getByText('Somebody <i>else</i>').click();
  await page.getByLabel('Credits').fill('2.5');
  await page.getByLabel('Note').fill('welcome');
  await page.getByRole('button', { name: 'Grant' }).click();
  await page.getByText('2.5 credits').waitFor();
  await go(page, 'Audit log');
  const entry = page.getByText('2.5: welcome');
  await entry.waitFor();
  t.is(await entry.count(), 1);
});

web('a list is read page by page, and searched by the service after a pause in typing', async (t) => {
  const { page, service } = await open(t);
  for (let i = 0; i < 60; i++) await service.stores.accounts.create(`Customer ${i}`);
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('operator/accounts?')) asked.push(new URL(request.url()).search);
  });
  await go(page, 'All accounts');
  const rows = page.locator('details.account');
  await rows.nth(49).waitFor();
  t.is(await rows.count(), 50);
  await page.getByRole('button', { name: 'Show older' }).click();
  await rows.nth(60).waitFor();
  t.is(await page.getByRole('button', { name: 'Show older' }).count(), 0);
  t.is(new Set(await rows.locator('.name').allTextContents()).size, 61);
  t.is(asked.length, 2);
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  await page.getByLabel('Search by name, e-mail or id').pressSequentially('CUSTOMER 7');
  await page.clock.runFor(200);
  t.is(asked.length, 2, 'the pause is not over');
  await page.clock.resume();
  await rows.nth(1).waitFor({ state: 'detached' });
  t.deepEqual(await rows.locator('.name').allTextContents(), ['Customer 7']);
  t.deepEqual(asked.slice(2), ['?search=CUSTOMER+7'], 'not with every letter');
  await page.getByLabel('Search by name, e-mail or id').fill('nobody of this name');
  await page.getByText('No matching accounts.').waitFor();
});

web('an account is deleted by typing its name', async (t) => {
  const { page, service } = await open(t);
  await go(page, 'Account');
  const button = page.getByRole('button', { name: 'Delete my account' });
  t.true(await button.isDisabled());
  await page.getByLabel(/^Type the account/).fill('Test');
  await button.click();
  await page.waitForURL(`${service.url}/`);
  t.is((await call(service, service.key)).status, 403);
});

const pages = ['Overview', 'Keys', 'Statement', 'Images', 'Account', 'All accounts', 'Audit log'];

for (const dark of [false, true]) {
  const theme = dark ? 'dark' : 'light';
  web(`every page looks right and is accessible, ${theme}`, async (t) => {
    const { page, service, complaints } = await open(t, {}, { dark });
    for (const size of ['full', 'preview', 'full']) await call(service, service.key, size);
    await fetch(`${service.url}/v1.0/improve`, {
      method: 'POST',
      headers: { 'X-Api-Key': service.key },
      body: form({ image_file: await scene(), image_filename: 'chair.jpg' }),
    });
    for (const name of pages) {
      await go(page, name);
      await page.waitForLoadState('networkidle');
      if (name === 'Overview') await page.reload();
      await page.waitForLoadState('networkidle');
      t.deepEqual(await accessibility(page), [], name);
      await screenshot(page, `console-${name.toLowerCase().replaceAll(' ', '-')}-${theme}`);
    }
    t.deepEqual(complaints, []);
  });
}

web('every page fits a window of 360 pixels', async (t) => {
  const { page, service } = await open(t, {}, { width: 360, height: 780 });
  await call(service, service.key);
  // Of any length, and without a space to break at.
  const long = 'w'.repeat(90);
  const { accounts, ledger } = service.stores;
  await accounts.create(long, undefined, `${long}@example.test`);
  await accounts.createKey(service.accountId, long);
  await ledger.post(service.accountId, { kind: 'grant', amount: credits(1), note: long });
  await service.stores.audit.write({ action: 'credits.grant', detail: long });
  await fetch(`${service.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': service.key },
    body: form({ image_file: await scene(), image_filename: `${long}.jpg` }),
  });
  for (const name of pages) {
    await go(page, name);
    await page.waitForLoadState('networkidle');
    t.false(await overflows(page), name);
    t.deepEqual(await accessibility(page), [], name);
  }
  await screenshot(page, 'console-phone');
});
