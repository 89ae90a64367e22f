import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { draftOptimised, findOptimised, processorKey } from '../../src/models/optimised.ts';

const cacheKey = { onnxruntime: '1.30.0', processor: 'abc', operators: 'amx_int8' };

function folder(t: ExecutionContext): string {
  const made = mkdtempSync(path.join(tmpdir(), 'cutout-optimised-'));
  t.teardown(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A prepared file with a copy whose weights are `weights`, or without a weights file. */
async function withCopy(t: ExecutionContext, weights: Buffer | undefined = Buffer.alloc(3 << 20, 7)) {
  const prepared = path.join(folder(t), 'prepared.onnx');
  writeFileSync(prepared, 'prepared');
  const draft = await draftOptimised(prepared, cacheKey);
  if (!draft) throw new Error('no draft');
  writeFileSync(draft.file, 'graph');
  if (weights) writeFileSync(`${draft.file}.data`, weights);
  await draft.keep();
  return prepared;
}

test('a copy is found by its key, for exactly the file it was made from', async (t) => {
  const prepared = await withCopy(t);
  const found = await findOptimised(prepared, cacheKey);
  t.is(readFileSync(found?.file ?? '', 'utf8'), 'graph');
  t.true(await found?.intact());
  t.deepEqual(readdirSync(path.dirname(prepared)).sort(), ['prepared.onnx', 'prepared.optimised']);
  t.is(await findOptimised(prepared, { ...cacheKey, onnxruntime: '1.31.0' }), undefined);
  t.is(await findOptimised(prepared, { ...cacheKey, processor: 'abd' }), undefined);
  t.is(await findOptimised(prepared, { ...cacheKey, operators: '' }), undefined);
  writeFileSync(prepared, 'prepared again');
  t.is(await findOptimised(prepared, cacheKey), undefined);
});

test('a single changed bit is detected, and a file of another length is not opened', async (t) => {
  const prepared = await withCopy(t);
  const { file } = (await findOptimised(prepared, cacheKey)) ?? { file: '' };
  for (const [name, at] of [
    [file, 2],
    [`${file}.data`, 0],
    [`${file}.data`, (3 << 20) - 1],
  ] as const) {
    const bytes = readFileSync(name);
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    writeFileSync(name, flipped);
    t.false(await (await findOptimised(prepared, cacheKey))?.intact(), `${name} ${at}`);
    writeFileSync(name, bytes);
    t.true(await (await findOptimised(prepared, cacheKey))?.intact());
  }
  const found = await findOptimised(prepared, cacheKey);
  truncateSync(`${file}.data`, 4096);
  t.is(await findOptimised(prepared, cacheKey), undefined);
  rmSync(`${file}.data`);
  t.is(await findOptimised(prepared, cacheKey), undefined);
  t.false(await found?.intact());
});

test('a network without large weights has no file for them', async (t) => {
  const prepared = path.join(folder(t), 'prepared.onnx');
  writeFileSync(prepared, 'prepared');
  const draft = await draftOptimised(prepared, cacheKey);
  writeFileSync(draft?.file ?? '', 'graph');
  await draft?.keep();
  t.true(await (await findOptimised(prepared, cacheKey))?.intact());
});

test('an unfinished draft is no copy and leaves nothing; a missing folder gives no draft', async (t) => {
  const prepared = path.join(folder(t), 'prepared.onnx');
  writeFileSync(prepared, 'prepared');
  const draft = await draftOptimised(prepared, cacheKey);
  writeFileSync(draft?.file ?? '', 'half');
  t.is(await findOptimised(prepared, cacheKey), undefined);
  await draft?.discard();
  t.deepEqual(readdirSync(path.dirname(prepared)), ['prepared.onnx']);
  // Nothing was saved: keeping the draft is no error and leaves nothing either.
  await (await draftOptimised(prepared, cacheKey))?.keep();
  t.deepEqual(readdirSync(path.dirname(prepared)), ['prepared.onnx']);
  t.is(await draftOptimised(path.join(folder(t), 'none', 'prepared.onnx'), cacheKey), undefined);
});

test('what a process that died left an hour ago goes with the next draft', async (t) => {
  const prepared = path.join(folder(t), 'prepared.onnx');
  writeFileSync(prepared, 'prepared');
  const draft = await draftOptimised(prepared, cacheKey);
  const own = path.basename(path.dirname(draft?.file ?? ''));
  const [dead, alive] = ['1', '2'].map((pid) => own.replace(/\d+$/, `99999999${pid}`)) as [string, string];
  for (const name of [dead, alive]) mkdirSync(path.join(path.dirname(prepared), name));
  const hourAgo = Date.now() / 1000 - 3601;
  utimesSync(path.join(path.dirname(prepared), dead), hourAgo, hourAgo);
  await draft?.discard();
  await (await draftOptimised(prepared, cacheKey))?.discard();
  t.deepEqual(readdirSync(path.dirname(prepared)).sort(), [alive, 'prepared.onnx']);
});

test('a processor is identified by its name and features', async (t) => {
  const file = path.join(folder(t), 'cpuinfo');
  const key = async (text: string) => {
    writeFileSync(file, text);
    return processorKey(file);
  };
  const one = 'processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: 2500\nflags\t\t: fpu avx2\n\n';
  const first = await key(one);
  t.truthy(first);
  t.is(await key(one + one.replace('2500', '3100').replace('processor\t: 0', 'processor\t: 1')), first);
  t.not(await key(one.replace('avx2', 'avx2 avx512f')), first);
  t.not(await key(one.replace('Some', 'Other')), first);
  t.is(await key('model name\t: Some CPU\n'), undefined);
  t.is(await processorKey(path.join(path.dirname(file), 'nothing')), undefined);
  if (existsSync('/proc/cpuinfo')) t.is(await processorKey(), await processorKey());
});
