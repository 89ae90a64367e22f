// node models/types/train/heldout.js DATA CACHE [MATTES]
// Features of the photos in heldout.csv, labelled by eye, which nothing was trained or tuned on: one file
// heldout.f32 in CACHE, rows in the order of the table. MATTES as for extract.js.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describer } from './describe.js';
import { load, networkMatte, ownMatte, roughMatte, seeded } from './pictures.js';

const [data, cache, mattes] = process.argv.slice(2);
mkdirSync(cache, { recursive: true });
const [, ...rows] = readFileSync(new URL('heldout.csv', import.meta.url), 'utf8')
  .trim()
  .split('\n');
const { describe, close } = await describer();
const features = [];
for (const row of rows) {
  const [name] = row.split(',');
  const picture = await load(path.join(data, name));
  const matte = networkMatte(mattes, name) ?? ownMatte(picture) ?? roughMatte('centre', seeded(name));
  features.push(Buffer.from((await describe(picture, matte)).buffer));
}
await close();
writeFileSync(path.join(cache, 'heldout.f32'), Buffer.concat(features));
console.log(`${rows.length} photos`);
