import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import {
  accessibility,
  chromiumMissing,
  closeChromium,
  openWindow,
  overflows,
  screenshot,
} from '../fixtures/chromium.ts';
import { engineOptions } from '../fixtures/engineSetup.ts';
import { heic } from '../fixtures/heic.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { eventually, form, type Service, startService } from '../fixtures/service.ts';

/** One window at a time: all at once wait for each other until a page's load takes too long. */
const web = unless(chromiumMissing, test.serial);
test.after.always(closeChromium);

const photo = async (name = 'my photo.jpg', width = 640) => ({
  name,
  mimeType: 'image/jpeg',
  buffer: await scene({ width, height: 480 }),
});

async function open(
  t: ExecutionContext,
  options: Parameters<typeof openWindow>[1] = {},
  serviceOptions: Parameters<typeof startService>[1] = {},
) {
  const service = await startService(t, { ttlSeconds: 600, ...serviceOptions });
  const window = await openWindow(t, options);
  await window.page.goto(service.url);
  await window.page.getByText('Drop a photo here').waitFor();
  return { service, ...window };
}

/** With a key, choosing a photo is all that is needed. */
async function cutOut(page: Page, service: Service): Promise<void> {
  await page.getByLabel('API key').fill(service.key);
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  await page.getByTestId('charged').waitFor();
}

const remove = (page: Page) => page.getByRole('button', { name: 'Remove the background' }).click();

/** Opens collapsed parts of the page by their summaries. */
async function unfold(page: Page, ...titles: readonly string[]): Promise<void> {
  for (const title of titles) await page.locator('summary').getByText(title, { exact: true }).click();
}

/** Quarter credits. */
const spent = async ({ stores, accountId }: Service) =>
  400 - (await stores.ledger.balance(accountId)).credits;
web('a result that may need a look says so, and one that the service is sure of does not', async (t) => {
  const { page, service } = await open(t);
  service.engine.uncertainty = 0.5;
  await cutOut(page, service);
  await t.notThrowsAsync(page.getByTestId('needs-look').waitFor());
  service.engine.uncertainty = 0;
  // Another photo, whose result is not that of the first one from the cache.
  await page.getByLabel(/^Choose a/).setInputFiles(await photo('other photo.jpg', 600));
  await page.locator('[data-testid=download][download^="other photo-"]').waitFor();
  t.is(await page.getByTestId('needs-look').count(), 0);
});

web('HEIC and AVIF photos are decoded by the page and sent as PNG', async (t) => {
  const { page, service, complaints } = await open(t);
  await page.getByLabel('API key').fill(service.key);
  const avif = await sharp(await scene({ width: 640, height: 480 }))
    .avif({ effort: 0 })
    .toBuffer();
  for (const [name, buffer, size] of [
    ['IMG_1.HEIC', heic('tiled'), '300x200'],
    ['photo.avif', avif, '577x433'],
  ] as const) {
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/v1.0/cutout'));
    await page.getByLabel(/^Choose a/).setInputFiles({ name, mimeType: '', buffer });
    const answer = await answered;
    t.is(answer.status(), 200, name);
    const headers = answer.headers();
    t.is(`${headers['x-width']}x${headers['x-height']}`, size);
    await page.getByTestId('charged').waitFor();
  }
  t.deepEqual(complaints, []);
});

web("the downloaded file is the API's answer, byte for byte", async (t) => {
  const { page, service, complaints } = await open(t);
  await cutOut(page, service);
  await unfold(page, 'Options', 'Result');
  await page.getByLabel('size', { exact: true }).selectOption('full');
  await page.getByLabel('format', { exact: true }).selectOption('png');
  await remove(page);
  await page.getByTestId('charged').getByText('1 credit', { exact: true }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId('download').click()]);
  t.is(download.suggestedFilename(), 'my photo-cutout.png');
  const { buffer } = await photo();
  const answer = await service.post(form({ image_file: buffer, size: 'full', format: 'png' }));
  t.deepEqual(readFileSync(await download.path()), Buffer.from(await answer.arrayBuffer()));
  t.is(answer.headers.get('x-credits-charged'), '0', 'the same request to the service');
  t.deepEqual(complaints, []);
});

web('errors of the API are shown unchanged', async (t) => {
  const { page, service } = await open(t);
  await unfold(page, 'Options', 'Crop and place');
  await page.getByLabel('scale', { exact: true }).fill('5%');
  await page.getByLabel('API key').fill(service.key);
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  const text = (await page.getByTestId('error').textContent()) ?? '';
  t.regex(text, /Invalid scale parameter given/);
  t.regex(text, /invalid_scale/);
  t.regex(text, /HTTP 400/);
  await page.getByLabel('API key').fill('unknown-key');
  await remove(page);
  await page.getByText('API Key invalid').waitFor();
});

web('the request is shown live, and its programs send what the button sends', async (t) => {
  const { page } = await open(t);
  await unfold(page, 'Options', 'Background', 'This request as code');
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
  // The page sends files as files, and the image has controls of its own.
  const sources = ['image_file', 'image_file_b64', 'image_url', 'mask_file_b64'];
  const names = Object.keys(properties).filter((name) => !sources.includes(name));
  t.true(names.length > 12);
  // The page is drawn from the same description, when it has arrived.
  await page.locator('[id="size"]').waitFor({ state: 'attached' });
  for (const name of [...names, 'shadow_type[car]', 'shadow_opacity[person]'])
    t.is(await page.locator(`[id="${name}"]`).count(), 1, name);
  t.deepEqual(
    await page.locator('[id="size"] option').allTextContents(),
    ['preview (default)', 'medium', 'hd', 'full', '50MP', 'auto'],
    'one spelling of each',
  );
  t.true(await page.getByText('JPEG, PNG, WebP, HEIC or AVIF, at most 22 MB and 50 megapixels.').isVisible());
  t.is(await page.getByText('Case-insensitive').count(), 0, 'only for those who write the words themselves');
});

web('zooming, comparing and backgrounds work by keyboard', async (t) => {
  const { page, service } = await open(t);
  await cutOut(page, service);
  const frame = page.getByRole('group', { name: /^Image:/ });
  await frame.focus();
  await page.keyboard.press('1');
  t.is(await page.locator('.zoom').textContent(), '100 %');
  await page.keyboard.press('+');
  t.is(await page.locator('.zoom').textContent(), '150 %');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('0');
  await page.getByRole('button', { name: 'Compare' }).click();
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('End');
  t.is(await slider.inputValue(), '100');
  await page.getByRole('button', { name: 'White' }).click();
  t.is(await page.getByRole('button', { name: 'White' }).getAttribute('aria-pressed'), 'true');
  await page.getByRole('button', { name: 'Result' }).click();
  t.is(await page.locator('.before').count(), 0);
});

web(
  'a brush takes away and restores; undo takes back; the next request has the result as its mask',
  async (t) => {
    const { page, service, complaints } = await open(t);
    await cutOut(page, service);
    await unfold(page, 'This request as code');
    const code = page.getByTestId('code');
    const canvas = page.getByTestId('strokes');
    const drag = async (fromX: number, toX: number, y: number) => {
      await canvas.scrollIntoViewIfNeeded();
      const sheet = await canvas.boundingBox();
      if (!sheet) throw new Error('nothing to paint on');
      await page.mouse.move(sheet.x + sheet.width * fromX, sheet.y + sheet.height * y);
      await page.mouse.down();
      await page.mouse.move(sheet.x + sheet.width * toX, sheet.y + sheet.height * y, { steps: 5 });
      await page.mouse.up();
    };
    // The subject is the middle half of the image.
    await page.getByRole('button', { name: 'Erase' }).click();
    await drag(0.3, 0.7, 0.5);
    await code.filter({ hasText: 'mask_file=@mask.png' }).waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await drag(0.05, 0.15, 0.1);
    await drag(0.85, 0.95, 0.9);
    await page.getByRole('button', { name: 'Undo' }).click();
    await remove(page);
    await page.getByRole('button', { name: 'Undo' }).and(page.locator('[disabled]')).waitFor();
    const mask = service.engine.plans.at(-1)?.mask;
    const value = (x: number, y: number) =>
      mask?.data[Math.floor(y * mask.height) * mask.width + Math.floor(x * mask.width)];
    t.deepEqual(
      [value(0.5, 0.5), value(0.5, 0.3), value(0.1, 0.1), value(0.9, 0.9), value(0.02, 0.5)],
      [0, 255, 255, 0, 0],
      'erased, untouched subject, restored, undone, untouched background',
    );
    t.deepEqual(await accessibility(page), []);

    const next = { ...(await photo('next.jpg')), buffer: await scene({ width: 600, height: 480 }) };
    await page.getByLabel(/^Choose a/).setInputFiles(next);
    await page.locator('[data-testid=download][download="next-cutout.png"]').waitFor();
    t.false('mask' in (service.engine.plans.at(-1) ?? {}), 'a mask belongs to one image');
    t.deepEqual(complaints, []);
  },
);

web('clicks choose the subject, a drag its box; undo, keys, and a next image without them', async (t) => {
  const { page, service, complaints } = await open(t, {}, { selection: true });
  await page.setViewportSize({ width: 360, height: 740 });
  await cutOut(page, service);
  await unfold(page, 'This request as code');
  const code = page.getByTestId('code');
  await page.getByRole('button', { name: 'Choose subject' }).click();
  const marks = page.getByTestId('marks');
  await marks.waitFor();
  const at = async (x: number, y: number) => {
    await marks.scrollIntoViewIfNeeded();
    const sheet = await marks.boundingBox();
    if (!sheet) throw new Error('nothing to mark');
    return [sheet.x + sheet.width * x, sheet.y + sheet.height * y] as const;
  };
  await page.mouse.click(...(await at(0.5, 0.5)));
  await page.keyboard.down('Alt');
  await page.mouse.click(...(await at(0.25, 0.25)));
  await page.mouse.click(...(await at(0.75, 0.75)));
  await page.keyboard.up('Alt');
  await page.getByRole('button', { name: 'Undo point' }).click();
  await page.mouse.move(...(await at(0.9, 0.8)));
  await page.mouse.down();
  await page.mouse.move(...(await at(0.2, 0.1)), { steps: 4 });
  await page.mouse.up();
  // The position of the cursor is the middle of the image.
  await page.getByRole('group', { name: /^Image: arrows move the cursor/ }).focus();
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowUp', 'Enter', 'Alt+Enter', 'Control+z']) {
    await page.keyboard.press(key);
  }
  await code.filter({ hasText: 'subject_box=' }).waitFor();
  const width = await page.evaluate('document.documentElement.scrollWidth');
  t.true(typeof width === 'number' && width <= 360, `${width}`);
  t.deepEqual(await accessibility(page), []);
  // Sent without a click on the button, when the last mark is a moment old.
  await eventually(() => service.engine.selections.at(-1)?.points?.length === 3);
  const { points = [], box } = service.engine.selections.at(-1) ?? {};
  const near = (value: number | undefined, wanted: number) => Math.abs((value ?? -1) - wanted) < 0.02;
  t.deepEqual(
    points.map(({ include }) => include),
    [true, false, true],
  );
  for (const [i, [x, y]] of (
    [
      [0.5, 0.5],
      [0.25, 0.25],
      [0.46, 0.48],
    ] as const
  ).entries()) {
    t.true(near(points[i]?.x, x) && near(points[i]?.y, y), JSON.stringify(points[i]));
  }
  t.true(near(box?.x1, 0.2) && near(box?.y1, 0.1) && near(box?.x2, 0.9) && near(box?.y2, 0.8));

  const asked = service.engine.selections.length;
  const next = { ...(await photo('next.jpg')), buffer: await scene({ width: 600, height: 480 }) };
  await page.getByLabel(/^Choose a/).setInputFiles(next);
  await page.locator('[data-testid=download][download="next-cutout.png"]').waitFor();
  t.is(service.engine.selections.length, asked, 'points belong to one image');
  t.deepEqual(complaints, []);
});

web('a photo dropped anywhere on the page is cut out at once, and so is one that is pasted', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel('API key').fill(service.key);
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
            .querySelector('.top')
            .dispatchEvent(
              new scope.DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
            );
        else scope.dispatchEvent(new scope.ClipboardEvent('paste', { clipboardData: data }));
      },
      { bytes, type },
    );
  for (const type of ['drop', 'paste'] as const) {
    await hand(type);
    await page.locator(`[data-testid=download][download="${type}-cutout.png"]`).waitFor();
  }
  t.is(await spent(service), 0, 'both were free previews');
});

web('the first preview is free and automatic, full size is one click and one credit', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel('API key').fill(service.key);
  const large = { ...(await photo()), buffer: await scene({ width: 1280, height: 800 }) };
  await page.getByLabel(/^Choose a/).setInputFiles(large);
  await page.getByTestId('charged').getByText('0 credits').waitFor();
  t.is(await spent(service), 0);
  await page.getByRole('button', { name: 'Full size, 1280 × 800 (1 credit)' }).click();
  await page.getByTestId('charged').getByText('1 credit', { exact: true }).waitFor();
  t.is(await spent(service), 4);
  t.is(await page.getByTestId('full-size').count(), 0, 'there is nothing larger');
  await page.getByLabel(/^Choose a/).setInputFiles(await photo('next.jpg'));
  await page.locator('[data-testid=download][download="next-cutout.png"]').waitFor();
  t.is(await spent(service), 4, 'a new photo is a preview again');
});

web('without free previews nothing is sent before a click', async (t) => {
  const service = await startService(t, {
    freePreviews: 0,
  });
  const { page } = await openWindow(t);
  await page.goto(service.url);
  await page.getByLabel('API key').fill(service.key);
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  await page.getByText('This result costs 0.25 credits').waitFor();
  t.is(await spent(service), 0);
  await page.getByRole('button', { name: 'Use credits' }).click();
  await page.getByTestId('charged').getByText('0.25 credits').waitFor();
  t.is(await spent(service), 1);
  // Asked once: the next photo goes on, and what it costs stands beside the button.
  await page.getByTestId('cost').getByText('0.25 credits').waitFor();
  await page.getByLabel(/^Choose a/).setInputFiles(await photo('next.jpg'));
  await page.locator('[data-testid=download][download="next-cutout.png"]').waitFor();
  t.is(await page.getByRole('button', { name: 'Use credits' }).count(), 0);
});

web('the file has the background that is shown; its cost stands on the button', async (t) => {
  const engine = createEngine(loadAddon(), engineOptions());
  t.teardown(() => engine.close(0));
  const { page, service, complaints } = await open(t, {}, { engine });
  await unfold(page, 'This request as code');
  await cutOut(page, service);
  await page.getByRole('button', { name: 'Green' }).click();
  await page.getByTestId('code').filter({ hasText: 'bg_color=1db954' }).waitFor();
  const button = page.getByTestId('download-on-ground');
  t.regex((await button.textContent()) ?? '', /free, 49 left today/);
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  const { data, info } = await sharp(readFileSync(await download.path()))
    .raw()
    .toBuffer({ resolveWithObject: true });
  t.is(info.width, 577);
  for (const [i, value] of [0x1d, 0xb9, 0x54].entries())
    t.true(Math.abs((data[i] ?? 0) - value) <= 3, `${data.subarray(0, 3)}`);
  // The result without a background is still shown, and is the file again.
  await page.getByRole('button', { name: 'Transparent' }).click();
  await page.getByTestId('download').waitFor();
  t.deepEqual(complaints, []);
});

web('the address of the start signs in: the first photo needs neither key nor click', async (t) => {
  const service = await startService(t);
  const token = await service.signIns.createLink(service.accountId);
  const { page, complaints } = await openWindow(t, { width: 1366, height: 768 });
  await page.goto(`${service.url}/#${token}`);
  await page.getByTestId('cost').getByText('free, 50 left today').waitFor();
  t.is(page.url(), `${service.url}/`, 'the token is not kept in the address');
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  const download = page.getByTestId('download');
  await download.waitFor();
  const box = await download.boundingBox();
  t.true(box !== null && box.y + box.height < 768, JSON.stringify(box));
  await page.getByRole('group', { name: /^Image:/ }).focus();
  await page.keyboard.press('Tab');
  t.is(await page.evaluate('document.activeElement.dataset.testid'), 'download');
  const again = await openWindow(t);
  await again.page.goto(`${service.url}/#${token}`);
  await again.page.getByText('Open the address that Cutout printed').waitFor();
  t.deepEqual(complaints, []);
});

web('several photos at once: the first, and a sentence', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel('API key').fill(service.key);
  await page.evaluate(
    ({ bytes }) => {
      const scope = globalThis as unknown as {
        DataTransfer: new () => { items: { add(file: unknown): void } };
        File: new (parts: unknown[], name: string, options: object) => unknown;
        document: { body: { dispatchEvent(event: unknown): void } };
        DragEvent: new (type: string, options: object) => unknown;
      };
      const data = new scope.DataTransfer();
      for (const name of ['one.jpg', 'two.jpg'])
        data.items.add(new scope.File([new Uint8Array(bytes)], name, { type: 'image/jpeg' }));
      scope.document.body.dispatchEvent(new scope.DragEvent('drop', { dataTransfer: data, bubbles: true }));
    },
    { bytes: [...(await photo()).buffer] },
  );
  await page.locator('[data-testid=download][download="one-cutout.png"]').waitFor();
  await page.getByText('2 photos were dropped; this is one.jpg.').waitFor();
  await page.getByLabel(/^Choose a/).setInputFiles(await photo('three.jpg'));
  await page.locator('[data-testid=download][download="three-cutout.png"]').waitFor();
  t.is(await page.getByText('photos were dropped').count(), 0);
});

web('an error goes when what caused it is changed', async (t) => {
  const { page, service } = await open(t);
  await unfold(page, 'Options', 'Crop and place');
  await page.getByLabel('scale', { exact: true }).fill('5%');
  await page.getByLabel('API key').fill(service.key);
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  await page.getByTestId('error').waitFor();
  await page.getByLabel('scale', { exact: true }).fill('original');
  await page.getByTestId('error').waitFor({ state: 'detached' });
  await remove(page);
  await page.getByTestId('charged').waitFor();
  t.is(await page.getByRole('alert').count(), 0);
});

web('without a key the photo is shown, and the page says how to get one', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel(/^Choose a/).setInputFiles(await photo());
  await page.getByRole('img', { name: 'Before' }).waitFor();
  await page.getByText('Sign in or enter an API key').waitFor();
  await page.getByLabel('API key').fill(service.key);
  await page.keyboard.press('Enter');
  await page.getByTestId('charged').waitFor();
  t.is(await page.getByRole('alert').count(), 0);
});

web('a sample is drawn and cut out', async (t) => {
  const { page, service } = await open(t);
  await page.getByLabel('API key').fill(service.key);
  await unfold(page, 'Sample or address');
  await page.getByRole('button', { name: 'Fur' }).click();
  await page.getByTestId('charged').waitFor();
  t.true((await page.getByTestId('code').textContent())?.includes('creature.jpg'));
});

web('the key stays in the tab: not in the address, and gone with a new window', async (t) => {
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

for (const [name, width, height] of [
  ['phone', 360, 780],
  ['tablet', 768, 1024],
] as const) {
  web(`fits a window of ${width} pixels`, async (t) => {
    const { page, service } = await open(t, { width, height });
    t.false(await overflows(page));
    await cutOut(page, service);
    await unfold(page, 'Options', 'Result', 'This request as code');
    t.false(await overflows(page));
    await screenshot(page, `playground-${name}`);
  });
}

web(
  'all scripts together are at most 80 kB compressed, and nothing is loaded from other origins',
  async (t) => {
    const service = await startService(t);
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
  },
);
