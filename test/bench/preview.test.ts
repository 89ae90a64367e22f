import { writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { run } from '../../bench/preview.ts';
import { allowAllImages, scene } from '../fixtures/images.ts';
import { startService } from '../fixtures/service.ts';
import { testFolder } from '../support/stores.ts';

test('every photograph is requested both ways in every round', async (t) => {
  const service = await startService(t);
  allowAllImages();
  const folder = testFolder(t);
  for (const name of ['one', 'two'])
    writeFileSync(path.join(folder, `${name}.jpg`), await scene({ width: 800, height: 600 }));
  const messages: string[] = [];
  const { figures, parts, settings } = await run(
    { url: service.url, key: service.key, images: [folder], mp: 1, rounds: 2, seconds: 60 },
    { progress: (text) => messages.push(text) },
  );
  t.deepEqual(messages, ['round 1 of 2, one', 'round 1 of 2, two', 'round 2 of 2, one', 'round 2 of 2, two']);
  t.like(settings, { photographs: 2, 'rounds done': 2 });
  const [table] = parts;
  if (table?.kind !== 'table') return t.fail('no table');
  t.deepEqual(table.rows.map(([name]) => name).sort(), ['one', 'two']);
  for (const [, preview, , full, ratio] of table.rows) {
    t.true(Number(preview) > 0 && Number(full) > 0);
    t.is(ratio, Number(preview) / Number(full));
  }
  const ratios = table.rows.map((row) => Number(row[4]));
  t.is(figures.find(({ name }) => name === 'preview.worst')?.median, Math.max(...ratios));
  t.is(
    figures.find(({ name }) => name === 'preview.within')?.median,
    ratios.filter((ratio) => ratio <= 0.5).length / 2,
  );
});
