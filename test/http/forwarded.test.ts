import test from 'ava';
import { startService } from '../fixtures/service.ts';

test('X-Forwarded-For without a configured proxy causes one warning, and is not trusted', async (t) => {
  const service = await startService(t, { attempts: 3 });
  const guess = (from?: string) =>
    fetch(`${service.url}/v1.0/account`, {
      headers: { 'X-Api-Key': 'a-key-that-nobody-has', ...(from && { 'X-Forwarded-For': from }) },
    });
  const warnings = () => service.lines().filter(({ msg }) => String(msg).includes('CUTOUT_PROXIES'));
  t.is((await guess()).status, 403);
  t.is(warnings().length, 0);
  for (let i = 1; i <= 2; i++) t.is((await guess(`192.0.2.${i}`)).status, 403);
  t.is((await guess('192.0.2.9')).status, 429, 'all of them are one address');
  t.is(warnings().length, 1);
  t.is(warnings()[0]?.['level'], 40);
  t.false(service.text().includes('192.0.2.'));
});

test("a configured proxy's address is trusted, without a warning", async (t) => {
  const service = await startService(t, { attempts: 1, proxies: 1 });
  const guess = (from: string) =>
    fetch(`${service.url}/v1.0/account`, {
      headers: { 'X-Api-Key': 'a-key-that-nobody-has', 'X-Forwarded-For': from },
    });
  t.is((await guess('192.0.2.1')).status, 403);
  t.is((await guess('192.0.2.1')).status, 429);
  t.is((await guess('192.0.2.1, 192.0.2.2')).status, 403, 'what the client wrote in front is not trusted');
  t.is((await guess('192.0.2.3, 192.0.2.2')).status, 429);
  t.false(service.text().includes('CUTOUT_PROXIES'));
});

for (const proxies of [0, 1]) {
  test(`X-Forwarded-Host does not make a page same-origin (${proxies} proxies)`, async (t) => {
    const service = await startService(t, { proxies });
    const token = await service.signIns.createLink(service.accountId);
    const open = (origin: string, host: string) =>
      fetch(`${service.url}/console/api/link`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Origin: origin, 'X-Forwarded-Host': host },
        body: JSON.stringify({ token }),
      });
    const forged = await open('https://evil.test', 'evil.test');
    t.is(forged.status, 403);
    t.regex(await forged.text(), /"code":"forged_request"/);
    t.is((await open(service.url, 'evil.test')).status, 200);
  });

  test(`X-Forwarded-Host appears on no page (${proxies} proxies)`, async (t) => {
    const headers = { 'X-Forwarded-Host': 'evil.test', 'X-Forwarded-Proto': 'evil' };
    const plain = await startService(t, { proxies });
    const page = await (await fetch(`${plain.url}/docs`, { headers })).text();
    t.false(page.includes('evil'));
    t.true(page.includes(`${plain.url}/v1.0/`));
    const known = await startService(t, { proxies, publicUrl: 'https://cutout.example.test' });
    t.true(
      (await (await fetch(`${known.url}/docs`, { headers })).text()).includes(
        'https://cutout.example.test/v1.0/',
      ),
    );
  });
}
