import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import {
  accessibility,
  chromiumMissing,
  closeChromium,
  openWindow,
  overflows,
  screenshot,
} from '../fixtures/chromium.ts';
import { unless } from '../fixtures/left_out.ts';
import { scene } from '../fixtures/pictures.ts';
import { form, type Service, startService } from '../fixtures/service.ts';

const web = unless(chromiumMissing);
test.after.always(closeChromium);

const photo = async (name = 'my photo.jpg') => ({
  name,
  mimeType: 'image/jpeg',
  buffer: await scene({ width: 640, height: 480 }),
});

async function open(t: ExecutionContext, options: Parameters<typeof openWindow>[1] = {}) {
  const service = await startService(t, { pages: true, keepSeconds: 600 });
  const window = await openWindow(t, options);
  await window.page.goto(service.url);
  await window.page.getByText('Drop a photo here').waitFor();
  return { service, ...window };
}

async function cutOut(page: Page, service: Service): Promise<void> {
  await page.getByLabel('Choose a photo').setInputFiles(await photo());
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Remove the background' }).click();
  await page.getByTestId('charged').waitFor();
}

web('the downloaded file is the answer of the API, byte for byte', async (t) => {
  const { page, service, complaints } = await open(t);
  await page.getByLabel('size', { exact: true }).selectOption('full');
  await page.getByLabel('format', { exact: true }).selectOption('png');
  await cutOut(page, service);
  t.is(await page.getByTestId('charged').textContent(), '1');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId('download').click()]);
  t.is(download.suggestedFilename(), 'my photo-cutout.png');
  const { buffer } = await photo();
  const answer = await service.post(form({ image_file: buffer, size: 'full', format: 'png' }));
  t.deepEqual(readFileSync(await download.path()), Buffer.from(await answer.arrayBuffer()));
  t.is(answer.headers.get('x-credits-charged'), '0', 'the same request to the service');
  t.deepEqual(complaints, []);
});

web('errors of the API are shown as they are', async (t) => {
  const { page, service } = await open(t);
  await page.getByText('Crop and place').click();
  await page.getByLabel('scale', { exact: true }).fill('5%');
  await page.getByLabel('Choose a photo').setInputFiles(await photo());
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Remove the background' }).click();
  const text = (await page.getByTestId('error').textContent()) ?? '';
  t.regex(text, /Invalid scale parameter given/);
  t.regex(text, /invalid_scale/);
  t.regex(text, /HTTP 400/);
  await page.getByLabel('API key').fill('unknown-key');
  await page.getByRole('button', { name: 'Remove the background' }).click();
  await page.getByText('API Key invalid').waitFor();
});

web('the request is shown live, and its programs send what the button sends', async (t) => {
  const { page } = await open(t);
  await page.getByText('Background', { exact: true }).click();
  await page.getByLabel('bg_color', { exact: true }).fill("it's");
  const code = page.getByTestId('code');
  t.true((await code.textContent())?.includes(`-F 'bg_color=it'\\''s'`));
  await page.getByRole('tab', { name: 'Python' }).click();
  t.true((await code.textContent())?.includes('"bg_color": "it\'s",'));
  await page.keyboard.press('ArrowLeft');
  t.true((await code.textContent())?.includes("body.append('bg_color', 'it\\'s');"));
  t.regex((await code.textContent()) ?? '', /process\.env\.CUTOUT_KEY/);
});

web('every option of the published description has a control', async (t) => {
  const { page, service } = await open(t);
  const { paths } = (await (await fetch(`${service.url}/openapi.json`)).json()) as {
    paths: Record<
      string,
      { post: { requestBody: { content: Record<string, { schema: { properties: object } }> } } }
    >;
  };
  const { properties } = paths['/v1.0/cutout']?.post.requestBody.content['multipart/form-data']?.schema ?? {
    properties: {},
  };
  const sources = ['image_file', 'image_file_b64', 'image_url'];
  const names = Object.keys(properties).filter((name) => !sources.includes(name));
  t.true(names.length > 12);
  for (const name of [...names, 'shadow_type[car]', 'shadow_opacity[person]'])
    t.is(await page.locator(`[id="${name}"]`).count(), 1, name);
});

web('zoomed, compared and laid over colours by keyboard', async (t) => {
  const { page, service } = await open(t);
  await cutOut(page, service);
  const frame = page.getByRole('group', { name: /^Picture:/ });
  await frame.focus();
  await page.keyboard.press('1');
  t.is(await page.locator('.zoom').textContent(), '100 %');
  await page.keyboard.press('+');
  t.is(await page.locator('.zoom').textContent(), '150 %');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('0');
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('End');
  t.is(await slider.inputValue(), '100');
  await page.getByRole('button', { name: 'White' }).click();
  t.is(await page.getByRole('button', { name: 'White' }).getAttribute('aria-pressed'), 'true');
  await page.getByRole('button', { name: 'Result' }).click();
  t.is(await page.locator('.before').count(), 0);
});

web('a photo can be dropped, and pasted', async (t) => {
  const { page } = await open(t);
  const bytes = [...(await photo()).buffer];
  const hand = (type: 'drop' | 'paste') =>
    page.evaluate(
      ({ bytes: given, type: kind }) => {
        const scope = globalThis as unknown as {
          DataTransfer: new () => { items: { add(file: unknown): void } };
          File: new (parts: unknown[], name: string, options: object) => unknown;
          document: { querySelector(selector: string): { dispatchEvent(event: unknown): void } };
          DragEvent: new (type: string, options: object) => unknown;
          ClipboardEvent: new (type: string, options: object) => unknown;
          dispatchEvent(event: unknown): void;
        };
        const data = new scope.DataTransfer();
        data.items.add(new scope.File([new Uint8Array(given)], `${kind}.jpg`, { type: 'image/jpeg' }));
        if (kind === 'drop')
          scope.document
            .querySelector('.frame')
            .dispatchEvent(
              new scope.DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
            );
        else scope.dispatchEvent(new scope.ClipboardEvent('paste', { clipboardData: data }));
      },
      { bytes, type },
    );
  for (const type of ['drop', 'paste'] as const) {
    await hand(type);
    await page.waitForFunction(
      `document.querySelector('[data-testid=code]').textContent.includes('${type}.jpg')`,
    );
  }
  t.pass();
});

web('a sample is drawn and cut out', async (t) => {
  const { page, service } = await open(t);
  await page.getByRole('button', { name: 'Fur' }).click();
  await page.getByLabel('API key').fill(service.key);
  await page.getByRole('button', { name: 'Remove the background' }).click();
  await page.getByTestId('charged').waitFor();
  t.true((await page.getByTestId('code').textContent())?.includes('creature.jpg'));
});

web('the key stays with the tab: not in the address, and gone with a new window', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel('API key').fill(service.key);
  t.false(page.url().includes(service.key));
  await page.reload();
  t.is(await page.getByLabel('API key').inputValue(), service.key);
  const other = await openWindow(t);
  await other.page.goto(service.url);
  t.is(await other.page.getByLabel('API key').inputValue(), '');
});

for (const dark of [false, true]) {
  const theme = dark ? 'dark' : 'light';
  web(`looks right and is accessible, ${theme}`, async (t) => {
    const { page, service, complaints } = await open(t, { dark });
    t.deepEqual(await accessibility(page), []);
    await screenshot(page, `playground-empty-${theme}`);
    await cutOut(page, service);
    t.deepEqual(await accessibility(page), []);
    await screenshot(page, `playground-${theme}`);
    t.deepEqual(complaints, []);
  });
}

web('fits a window of 360 pixels', async (t) => {
  const { page, service } = await open(t, { width: 360, height: 780 });
  t.false(await overflows(page));
  await cutOut(page, service);
  t.false(await overflows(page));
  await screenshot(page, 'playground-phone');
});

web('scripts together are at most 80 kB compressed, and nothing comes from elsewhere', async (t) => {
  const service = await startService(t, { pages: true });
  const { page } = await openWindow(t);
  const hosts = new Set<string>();
  let bytes = 0;
  page.on('request', (request) => {
    if (!request.url().startsWith('blob:')) hosts.add(new URL(request.url()).origin);
  });
  page.on('response', (response) => {
    if (response.url().endsWith('.js')) bytes += Number(response.headers()['content-length']);
  });
  for (const path of ['/', '/console']) {
    await page.goto(service.url + path);
    await page.waitForLoadState('networkidle');
  }
  t.deepEqual([...hosts], [service.url]);
  t.true(bytes > 0 && bytes < 80_000, `${bytes} bytes`);
  t.log(`${bytes} bytes of script for both pages`);
});
