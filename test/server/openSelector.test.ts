import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import type { Precision } from '../../src/compiler/form.ts';
import { preparerOf } from '../../src/compiler/form.ts';
import type { SelectorSpec } from '../../src/engine/types.ts';
import { installedCatalogue, listCatalogue } from '../../src/models/catalogue.ts';
import { networkFiles } from '../../src/models/layout.ts';
import { SUBJECT_DECODER, SUBJECT_ENCODER } from '../../src/models/locate.ts';
import { openSelector } from '../../src/server/openSelector.ts';
import { temporaryFolder } from '../fixtures/cli.ts';

/** Records as preparation writes them, of files that no test opens. */
async function prepare(modelsDir: string, name: string, precision: Precision): Promise<string> {
  const entry = (await listCatalogue(installedCatalogue())).find(({ manifest }) => manifest.name === name);
  if (!entry) throw new Error(`no ${name}`);
  const files = networkFiles(modelsDir, entry.manifest, precision);
  const content = Buffer.from(`${name} ${precision}`);
  mkdirSync(files.folder, { recursive: true });
  writeFileSync(files.prepared, content);
  const record = {
    preparer: preparerOf(precision),
    sourceSha256: entry.manifest.file.sha256,
    sha256: createHash('sha256').update(content).digest('hex'),
    bytes: content.length,
    precision,
    outputs: [],
    freeBatch: false,
    sizeStep: 0,
  };
  writeFileSync(files.record, JSON.stringify(record));
  return path.basename(files.prepared);
}

const zen4 = { instructionSets: ['avx512_vnni', 'avx512_bf16'], operators: ['avx512_vnni', 'avx512_bf16'] };
const zen3 = { instructionSets: ['avx2'], operators: ['avx2'] };

test('the encoder is opened in bf16 with the operators of the processor, and the decoder in floats', async (t) => {
  const modelsDir = temporaryFolder(t);
  const opened: SelectorSpec[] = [];
  const engine = {
    loadSelector: async (spec: SelectorSpec) => {
      opened.push(spec);
      return { embeddingBytes: 4, loadMs: 1 };
    },
    embed: async () => ({ data: new Uint8Array(4) }),
    select: () => Promise.reject(new Error('not asked')),
  };
  const selectorFor = (processor: typeof zen4, precision: 'fp32' | 'bf16' | 'int8') =>
    openSelector(
      engine,
      { modelsDir, precision, operators: 'auto', subjectSelection: 'on' },
      {
        pull: false,
        observer: { notice: () => {}, progress: () => {} },
        signal: new AbortController().signal,
        processor,
      },
    );
  const image = { data: new Uint8Array(4), width: 1, height: 1 };

  await prepare(modelsDir, SUBJECT_DECODER, 'fp32');
  const inBf16 = await prepare(modelsDir, SUBJECT_ENCODER, 'bf16');
  t.true(await selectorFor(zen4, 'bf16')?.installed());
  t.false(await selectorFor(zen3, 'int8')?.installed(), 'floats are not there');
  t.false(await selectorFor(zen4, 'fp32')?.installed());
  const inFloats = await prepare(modelsDir, SUBJECT_ENCODER, 'fp32');
  await selectorFor(zen4, 'bf16')?.embed(image);
  await selectorFor(zen3, 'int8')?.embed(image);
  await selectorFor(zen4, 'fp32')?.embed(image);
  t.deepEqual(
    opened.map(({ encoder, decoder, operators }) => [
      path.basename(encoder),
      path.basename(decoder),
      operators,
    ]),
    [
      [inBf16, inFloats, 'avx512_bf16'],
      [inFloats, inFloats, undefined],
      [inFloats, inFloats, undefined],
    ],
  );
});
