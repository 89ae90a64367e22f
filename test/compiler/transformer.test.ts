import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { floatTensor } from '../../src/compiler/onnx/build.ts';
import { attribute, floatValues } from '../../src/compiler/onnx/graph.ts';
import { GraphProtoSchema, ModelProtoSchema, type NodeProto } from '../../src/compiler/onnx/onnx_pb.ts';
import { loadAddon } from '../../src/engine/addon.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { networkOutput } from '../../src/engine/networkOutput.ts';
import { operatorsOf } from '../../src/models/precision.ts';
import { engineOptions, Networks } from '../fixtures/engineSetup.ts';
import { sayLeftOut } from '../fixtures/leftOut.ts';
import { BF16_KERNELS, leaveOutKernels } from '../fixtures/lowPrecisionKernels.ts';
import { FLOAT, int64s, node, value } from '../fixtures/onnx.ts';
import { type GeluForm, TRANSFORMER_SIDE, transformerNetwork } from '../fixtures/transformer.ts';

const native = loadAddon();
const operators = operatorsOf('bf16', native.versions().operators);
if (operators.length > 0) leaveOutKernels(operators, BF16_KERNELS);
const networks = new Networks();
test.after.always(() => networks.remove());

function present(t: ExecutionContext): boolean {
  if (operators.length > 0) return true;
  sayLeftOut(t, 'this processor has no dot products of bf16');
  return false;
}

const bytesOf = (file: Uint8Array, form: 'fp32' | 'bf16' | 'int8-operators') =>
  Buffer.concat([...compileOnnx(file, undefined, form).pieces]);

const nodesOf = (file: Uint8Array, form: 'bf16' | 'int8-operators' = 'bf16'): readonly NodeProto[] =>
  fromBinary(ModelProtoSchema, bytesOf(file, form)).graph?.node ?? [];

const gelus = (nodes: readonly NodeProto[], prefix = 'Bf16') =>
  nodes.filter((node) => node.opType === `${prefix}Product` && attribute(node, 'gelu')?.i === 1n).length;

const SIDE = TRANSFORMER_SIDE;

/** Alpha of an image by a network file. */
async function alphaOf(t: ExecutionContext, file: Buffer, title: string, kernel?: string, threads = 1) {
  const name = path.join(networks.folder, `${title}.onnx`);
  writeFileSync(name, file);
  const engine = createEngine(native, engineOptions({ intraOpThreads: threads }));
  t.teardown(() => engine.close(0));
  await engine.load({
    name: title,
    path: name,
    width: SIDE,
    height: SIDE,
    mean: [128, 128, 128],
    std: [128, 128, 128],
    output: 'logit',
    trainedOn: 'mattes',
    ...(kernel !== undefined && { operators: kernel }),
  });
  const data = new Uint8Array(SIDE * SIDE * 4).map((_, at) => (at * 37 + (at >> 6) * 11) % 251);
  const { values } = await networkOutput(engine, title, { data, width: SIDE, height: SIDE });
  return Uint8Array.from(values, (value) => Math.round(value * 255));
}

for (const [form, prefix, allowed] of [
  ['bf16', 'Bf16', 1],
  ['int8-operators', 'Int8', 2],
] as const)
  test(`a transformer with windows, GELU and DeformConv runs as ${form} and agrees with floats`, async (t) => {
    const kernels = operatorsOf(form === 'bf16' ? 'bf16' : 'int8', native.versions().operators);
    if (kernels.length === 0) return sayLeftOut(t, `this processor has no kernels for ${form}`);
    t.timeout(240_000);
    const file = transformerNetwork();
    const nodes = nodesOf(file, form);
    t.is(nodes.filter(({ opType }) => opType === `${prefix}Product`).length, 4);
    t.is(gelus(nodes, prefix), 1);
    t.false(nodes.some(({ opType }) => opType === 'Erf'));
    t.is(nodes.filter(({ opType }) => opType === `${prefix}DeformConv`).length, 1);
    // Of the patches, the offsets and the masks; the last one has one output.
    t.is(nodes.filter(({ opType }) => opType === `${prefix}Conv`).length, 3);
    const floats = await alphaOf(t, bytesOf(file, 'fp32'), 'floats');
    t.true(new Set(floats).size > 60, 'the matte has many values');
    for (const kernel of kernels) {
      const alone = await alphaOf(t, bytesOf(file, form), form, kernel);
      t.deepEqual(await alphaOf(t, bytesOf(file, form), form, kernel, 2), alone, 'threads change nothing');
      const off = alone.map((value, at) => Math.abs(value - (floats[at] ?? 0)));
      const mean = off.reduce((sum, each) => sum + each, 0) / off.length;
      t.log(`${kernel}: ${mean.toFixed(3)} of 255 on average, ${Math.max(...off)} at most`);
      t.true(mean > 0 && mean < allowed);
      t.true(Math.max(...off) <= 8 * allowed);
    }
  });

test('GELU is found however exporters write it, and what only looks like it is left', (t) => {
  const found = (form: GeluForm) => gelus(nodesOf(transformerNetwork(form)));
  t.is(found('halvedLast'), 1);
  t.is(found('halvedFirst'), 1);
  t.is(found('halvedShare'), 1);
  t.is(found('wrongDivisor'), 0);
  t.true(nodesOf(transformerNetwork('wrongDivisor')).some(({ opType }) => opType === 'Erf'));
});

test('weights that a network uses twice are packed once', (t) => {
  const model = fromBinary(ModelProtoSchema, transformerNetwork());
  const graph = model.graph;
  const product = graph?.node.find(({ opType }) => opType === 'MatMul');
  const [tokens = '', weights = ''] = product?.input ?? [];
  const [to = ''] = product?.output ?? [];
  const sum = graph?.node.find(({ opType, input }) => opType === 'Add' && input.includes(to));
  const bias = sum?.input.find((name) => name !== to) ?? '';
  if (!graph || !sum) throw new Error('no product has a bias');
  const again = (name: string, row: string, scale: string) => [
    node('Mul', [tokens, scale], [`${name} tokens`]),
    node('MatMul', [`${name} tokens`, weights], [`${name} product`]),
    node('Add', [`${name} product`, row], [name]),
  ];
  graph.initializer.push(floatTensor('other row', [192], new Float32Array(192)));
  const at = graph.node.indexOf(sum) + 1;
  const [all = ''] = sum.output;
  graph.node.splice(at, 0, ...again('again', bias, 'scale'), ...again('other', 'other row', 'scale'));
  graph.node.splice(at + 6, 0, node('Sum', [all, 'again', 'other'], ['three']));
  for (const each of graph.node.slice(at + 7))
    each.input = each.input.map((name) => (name === all ? 'three' : name));
  const products = nodesOf(toBinary(ModelProtoSchema, model)).filter(
    ({ opType }) => opType === 'Bf16Product',
  );
  const packed = (name: string) => products.find(({ output }) => output[0] === name)?.input.slice(1);
  t.is(packed(all)?.length, 2);
  t.deepEqual(packed('again'), packed(all));
  t.notDeepEqual(packed('other'), packed(all), 'its bias is another one');
});

test('weights that a node transposes are packed as they are used', (t) => {
  const file = transformerNetwork();
  const model = fromBinary(ModelProtoSchema, file);
  const graph = model.graph;
  const known = new Map(graph?.initializer.map((tensor) => [tensor.name, tensor]));
  for (const product of graph?.node.filter(({ opType }) => opType === 'MatMul') ?? []) {
    const tensor = known.get(product.input[1] ?? '');
    const values = floatValues(tensor);
    if (!graph || !tensor || !values) continue;
    const [rows = 0, columns = 0] = tensor.dims.map(Number);
    const turned = Float32Array.from(
      values,
      (_, at) => values[(at % rows) * columns + Math.floor(at / rows)] ?? 0,
    );
    graph.initializer.push(floatTensor(`${tensor.name} turned`, [columns, rows], turned));
    graph.node.unshift(node('Transpose', [`${tensor.name} turned`], [`${tensor.name} back`]));
    product.input[1] = `${tensor.name} back`;
  }
  const packed = (bytes: Uint8Array) =>
    fromBinary(ModelProtoSchema, bytesOf(bytes, 'bf16')).graph?.initializer.flatMap(({ name, rawData }) =>
      /bf16/.test(name) ? [[name, Buffer.from(rawData).toString('base64')]] : [],
    );
  const wanted = packed(file);
  t.true((wanted?.length ?? 0) >= 8);
  t.deepEqual(packed(toBinary(ModelProtoSchema, model)), wanted);
});

test('a bias that is no constant row is left to ONNX Runtime', (t) => {
  const model = fromBinary(ModelProtoSchema, transformerNetwork());
  const nodes = model.graph?.node ?? [];
  const conv = nodes.find(({ opType, input }) => opType === 'Conv' && (input[2] ?? '') !== '');
  if (!conv) throw new Error('no convolution has a bias');
  nodes.unshift(node('Add', [conv.input[2] ?? '', conv.input[2] ?? ''], ['twice']));
  conv.input[2] = 'twice';
  const left = nodesOf(Buffer.from(toBinary(ModelProtoSchema, model))).filter(
    ({ opType }) => opType === 'Conv',
  );
  t.true(left.some(({ input }) => input[2] === 'twice'));

  const gemm = (biasSides: readonly number[]) => {
    const graph = create(GraphProtoSchema, {
      name: 'gemm',
      input: [value('image', FLOAT, [1, 3, 32, 32])],
      output: [value('alpha', FLOAT, [1, 1, 32, 32])],
      initializer: [
        int64s('rows', [32, 96]),
        int64s('plane', [1, 1, 32, 32]),
        floatTensor('weights', [96, 32], new Float32Array(96 * 32).fill(0.1)),
        floatTensor(
          'bias',
          biasSides,
          Float32Array.from({ length: 32 }, (_, at) => at),
        ),
      ],
      node: [
        node('Reshape', ['image', 'rows'], ['flat']),
        node('Gemm', ['flat', 'weights', 'bias'], ['sums']),
        node('Reshape', ['sums', 'plane'], ['alpha']),
      ],
    });
    const opsetImport = [{ domain: '', version: 17n }];
    return toBinary(ModelProtoSchema, create(ModelProtoSchema, { irVersion: 8n, opsetImport, graph }));
  };
  t.is(nodesOf(gemm([1, 32]))[1]?.opType, 'Bf16Product');
  t.throws(() => bytesOf(gemm([32, 1]), 'bf16'), { message: /no matrix products/ });
});

test('a damaged node is an error of the model', async (t) => {
  if (!present(t)) return;
  t.timeout(240_000);
  const damaged = (change: (node: NodeProto) => void, damagedType = 'Bf16Product') => {
    const model = fromBinary(ModelProtoSchema, bytesOf(transformerNetwork(), 'bf16'));
    const node = model.graph?.node.find(({ opType }) => opType === damagedType);
    if (node) change(node);
    return Buffer.from(toBinary(ModelProtoSchema, model));
  };
  const settings = (node: NodeProto, name: string, value: bigint) => {
    const setting = attribute(node, name);
    if (!setting) throw new Error(`no ${name}`);
    if (setting.ints.length > 0) setting.ints = [value];
    else setting.i = value;
  };
  const cases: readonly [string, (node: NodeProto) => void, string?][] = [
    ['kernel', (node) => settings(node, 'kernel', 3n), 'Bf16Conv'],
    ['channels', (node) => settings(node, 'channels', 32n), 'Bf16DeformConv'],
    ['inputs', (node) => settings(node, 'inputs', 32n)],
    ['columns', (node) => settings(node, 'columns', -1n)],
    [
      'attributes',
      (node) => {
        node.attribute = node.attribute.filter(({ name }) => name !== 'columns');
      },
    ],
    [
      'constants',
      (node) => {
        [node.input[1], node.input[2]] = [
          node.input[1] ?? '',
          node.input[2]?.replace('biases', 'none') ?? '',
        ];
      },
    ],
    [
      'outputs',
      (node) => {
        node.output = [...node.output, 'another'];
      },
    ],
  ];
  for (const [title, change, type] of cases) {
    await t.throwsAsync(
      alphaOf(t, damaged(change, type), `damaged-${title}`, operators[0]),
      { code: 'ENGINE_MODEL' },
      title,
    );
  }
  await t.throwsAsync(alphaOf(t, bytesOf(transformerNetwork(), 'bf16'), 'none'), { code: 'ENGINE_MODEL' });
});
