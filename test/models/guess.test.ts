import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { floatTensor } from '../../src/compiler/onnx/build.ts';
import {
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  StringStringEntryProtoSchema,
} from '../../src/compiler/onnx/onnx_pb.ts';
import { type Guesses, guess } from '../../src/models/guess.ts';
import { readUntrusted } from '../../src/models/untrusted.ts';
import { deformableNetwork } from '../fixtures/deformable.ts';
import { node, SIDE, tinyNetwork, value } from '../fixtures/onnx.ts';
import { tinyNetwork as meanNetwork } from '../fixtures/tinyNetwork.ts';

const model = (change: (graph: GraphProto, model: ModelProto) => void = () => {}): ModelProto => {
  const read = fromBinary(ModelProtoSchema, tinyNetwork('fp32'));
  if (read.graph) change(read.graph, read);
  return read;
};
const guessed = (change?: (graph: GraphProto) => void): Guesses => guess(model(change));

test('size, output and float format are read from the graph', (t) => {
  const tiny = guessed();
  t.like(tiny.size, { value: { width: SIDE, height: SIDE }, sure: true });
  t.like(tiny.output, { value: 'probability', sure: true, because: 'it ends in Sigmoid' });
  t.is(tiny.precision, 'fp32');
  const half = guess(readUntrusted(tinyNetwork('fp16')));
  t.is(half.precision, 'fp16');
  t.like(half.output, { value: 'probability', sure: true });

  const birefnet = guess(readUntrusted(deformableNetwork({ precision: 'fp16', kind: 'still' })));
  t.like(birefnet.size, { value: { width: 1024, height: 1024 }, sure: false });
  t.like(birefnet.output, { value: 'logit', sure: true, because: 'it ends in Conv' });
  t.like(birefnet.normalisation, { value: 'imagenet', sure: true });

  const unknown = guess(readUntrusted(meanNetwork({ width: 32, height: 32, gain: 1, bias: 0 })));
  t.like(unknown.output, { value: 'logit', sure: true });
  t.like(unknown.normalisation, { value: 'imagenet', sure: false });
});

test('an operator whose range is not known leaves the output to a run', (t) => {
  const { output } = guessed((graph) => {
    graph.node.push(node('Mul', ['alpha', 'alpha'], ['square_of_alpha']));
    const [first] = graph.output;
    if (first) first.name = 'square_of_alpha';
  });
  t.like(output, { value: undefined, sure: false });
});

/** The tiny network with an operator before its first layer. */
const before = (opType: string, number: number) =>
  guessed((graph) => {
    graph.initializer.push(floatTensor('constant', [1, 3, 1, 1], new Float32Array(3).fill(number)));
    for (const each of graph.node) each.input = each.input.map((name) => (name === 'image' ? 'own' : name));
    graph.node.unshift(node(opType, ['image', 'constant'], ['own']));
  }).normalisation;

test('a graph that normalises the image itself wants what it does not do', (t) => {
  t.like(before('Div', 255), { value: 'bytes', sure: true });
  t.like(before('Mul', 1 / 255), { value: 'bytes', sure: true });
  t.like(before('Sub', 127.5), { value: 'bytes', sure: true });
  t.like(before('Sub', 0.485), { value: 'unit', sure: true });
  t.like(before('Mul', 2), { sure: false });
});

const refused: Record<string, [RegExp, (graph: GraphProto, model: ModelProto) => void]> = {
  'two inputs': [/has 2 inputs/, (graph) => void graph.input.push(value('more', 1, [1, 3, 8, 8]))],
  'an input of bytes': [
    /not of floats/,
    (graph) => void graph.input.splice(0, 1, value('image', 2, [1, 3, 8, 8])),
  ],
  'channels last': [
    /shape \[1, 8, 8, 3\].*channels last/,
    (graph) => void graph.input.splice(0, 1, value('image', 1, [1, 8, 8, 3])),
  ],
  'several maps as output 0': [/output 0 of shape \[1, 4, 4, 4\]/, (graph) => void graph.output.reverse()],
  "an operator of somebody's own": [
    /operator Conv of cutout/,
    (graph) => {
      const [, conv] = graph.node;
      if (conv) conv.domain = 'cutout';
    },
  ],
};

for (const [title, [message, change]] of Object.entries(refused)) {
  test(`a network with ${title} is refused`, (t) => {
    t.throws(() => guess(model(change)), { code: 'MODEL_UNSUPPORTED', message });
  });
}

const bytesOf = (change: (graph: GraphProto, whole: ModelProto) => void) =>
  toBinary(ModelProtoSchema, model(change));

test('weights in other files are refused, by their key or by their place', (t) => {
  const named = bytesOf((graph) => {
    const entry = create(StringStringEntryProtoSchema, { key: 'location', value: '../../../../etc/passwd' });
    graph.initializer[0]?.externalData.push(entry);
  });
  t.throws(() => readUntrusted(named), { code: 'MODEL_EXTERNAL_DATA', message: /other files/ });
  const placed = bytesOf((graph) => {
    const [first] = graph.initializer;
    if (first) first.dataLocation = 1;
  });
  t.throws(() => readUntrusted(placed), { code: 'MODEL_EXTERNAL_DATA' });
});

/** A field of protobuf: its number, its bytes. */
const field = (number: number, ...parts: readonly Uint8Array[]): Uint8Array => {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  for (let rest = body.length; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      length.push(rest);
      break;
    }
    length.push((rest % 128) + 128);
  }
  const tag = number * 8 + 2;
  return Buffer.concat([
    Uint8Array.from(tag < 128 ? [tag] : [(tag % 128) + 128, tag >> 7]),
    Uint8Array.from(length),
    body,
  ]);
};

test('small files that would take much memory are not read', (t) => {
  // Two million empty nodes of two bytes each, and some more.
  const nodes = field(7, Buffer.alloc(4_200_000, Uint8Array.of(10, 0)));
  t.throws(() => readUntrusted(nodes), { code: 'MODEL_TOO_LARGE', message: /more parts/ });
  // A tensor of five million integers of one byte each, which would be BigInts.
  const numbers = field(7, field(5, field(7, new Uint8Array(5_000_000))));
  t.throws(() => readUntrusted(numbers), { code: 'MODEL_TOO_LARGE', message: /numbers/ });
  let nested: Uint8Array = new Uint8Array();
  for (let depth = 0; depth < 50; depth++) nested = field(1, field(5, field(6, nested)));
  t.throws(() => readUntrusted(field(7, nested)), { code: 'MODEL_TOO_LARGE', message: /nested/ });
});

test('functions of its own, sparse tensors and training are refused with what to do', (t) => {
  const whole = tinyNetwork('fp32');
  const functions = Buffer.concat([whole, field(25, new Uint8Array())]);
  t.throws(() => readUntrusted(functions), { code: 'MODEL_UNSUPPORTED', message: /inline them/ });
  t.throws(() => readUntrusted(Buffer.concat([whole, field(20, new Uint8Array())])), {
    code: 'MODEL_UNSUPPORTED',
  });
});

test('a file that is damaged anywhere is refused or is another network, and never a crash', (t) => {
  const whole = tinyNetwork('fp32');
  t.notThrows(() => readUntrusted(whole));
  for (const length of [0, 1, 10, 100, whole.length - 1]) {
    t.throws(() => guess(readUntrusted(whole.subarray(0, length))), { code: 'MODEL_DAMAGED' }, `${length}`);
  }
  t.throws(() => readUntrusted(Buffer.from('<!doctype html><title>404</title>')), { code: 'MODEL_DAMAGED' });
  let refusals = 0;
  for (let at = 0; at < whole.length; at += 7) {
    const bytes = Uint8Array.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 0xff;
    try {
      guess(readUntrusted(bytes));
    } catch (error) {
      refusals++;
      t.regex(String((error as { code?: string }).code), /^MODEL_/, `byte ${at}: ${String(error)}`);
    }
  }
  t.true(refusals > 10);
});
