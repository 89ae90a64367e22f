import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { compileOnnx } from '../../src/compiler/compile.ts';
import { floatTensor } from '../../src/compiler/onnx/build.ts';
import {
  type AttributeProto,
  AttributeProtoSchema,
  GraphProtoSchema,
  ModelProtoSchema,
} from '../../src/compiler/onnx/onnx_pb.ts';
import { FLOAT, int, int64s, ints, node, text, value } from '../fixtures/onnx.ts';
import { random } from '../fixtures/random.ts';
import { largestDifference, runNetwork } from './run.ts';

const SIDE = 32;

interface Changes {
  readonly operatorSet?: bigint;
  /** The last convolution reads three by three pixels. */
  readonly wide?: boolean;
  /** Whether another node computes with the maps that lie side by side. */
  readonly shared?: boolean;
  /** Nothing is known of how many channels one of the maps has. */
  readonly unknown?: boolean;
  readonly mode?: 'linear' | 'nearest' | 'cubic';
  /** The number of channels of the enlarged map is read from its shape. */
  readonly counted?: boolean;
  /** A nested graph reads the number of channels. */
  readonly nested?: boolean;
  readonly setting?: AttributeProto;
}

/** A nested graph that reads the number of channels of the enlarged map. */
function branch(name: string): AttributeProto {
  const reads = [
    node('Gather', ['large shape', 'at1'], ['channels']),
    node('Cast', ['channels'], ['made'], [int('to', FLOAT)]),
  ];
  const g = create(GraphProtoSchema, { name, node: reads, output: [value('made', FLOAT, [1])] });
  return create(AttributeProtoSchema, { name, type: 5, g });
}

/** A network that ends as those of the BiRefNet family do: an enlarged map, another of the whole size, and their convolution. */
function network(changes: Changes = {}): Uint8Array {
  const { operatorSet = 19n, wide, shared, unknown, mode = 'linear', counted, nested, setting } = changes;
  const next = random(31);
  const some = (name: string, dims: readonly number[]) => {
    const length = dims.reduce((product, side) => product * side, 1);
    const values = Float32Array.from({ length }, () => next() - 0.5);
    return floatTensor(name, dims, values);
  };
  const same = [ints('pads', [1, 1, 1, 1]), ints('kernel_shape', [3, 3])];
  const side = wide ? 3 : 1;
  const nodes = [
    node('Conv', ['image', 'a/w', 'a/b'], ['small'], [...same, ints('strides', [2, 2])]),
    node('Shape', ['small'], ['shape']),
    node('Slice', ['shape', 'zero', 'two'], ['first']),
    node('Concat', ['first', 'side'], ['sizes'], [int('axis', 0)]),
    node(
      'Resize',
      ['small', '', '', 'sizes'],
      ['large'],
      [
        text('mode', mode),
        text('coordinate_transformation_mode', 'align_corners'),
        ...(setting ? [setting] : []),
      ],
    ),
    // What the image is enlarged to is read from the map beside it.
    node('Shape', ['large'], ['large shape']),
    node('Gather', ['large shape', counted ? 'at1' : 'at2'], ['height']),
    nested
      ? node('If', ['zero'], ['number'], [branch('then_branch'), branch('else_branch')])
      : node('Cast', ['height'], ['number'], [int('to', FLOAT)]),
    node('Mul', ['image', 'number'], ['bright']),
    node('Conv', ['bright', 'b/w', 'b/b'], [unknown ? 'made' : 'middle'], same),
    ...(unknown ? [node('Relu', ['made'], ['middle'])] : []),
    node('Concat', ['large', 'middle'], ['all'], [int('axis', 1)]),
    node(
      'Conv',
      ['all', 'c/w', 'c/b'],
      [shared ? 'part' : 'logit'],
      wide ? same : [ints('kernel_shape', [1, 1])],
    ),
    ...(shared
      ? [
          node('ReduceMean', ['all', 'at1'], ['mean'], [int('keepdims', 1)]),
          node('Add', ['part', 'mean'], ['logit']),
        ]
      : []),
  ];
  const graph = create(GraphProtoSchema, {
    name: 'last',
    node: nodes,
    input: [value('image', FLOAT, [1, 3, SIDE, SIDE])],
    output: [value('logit', FLOAT, [1, 2, SIDE, SIDE])],
    initializer: [
      ...[some('a/w', [12, 3, 3, 3]), some('a/b', [12]), some('b/w', [8, 3, 3, 3]), some('b/b', [8])],
      ...[some('c/w', [2, 20, side, side]), some('c/b', [2])],
      ...[int64s('zero', [0]), int64s('two', [2]), int64s('side', [SIDE, SIDE])],
      ...[int64s('at1', [1]), int64s('at2', [2])],
    ],
  });
  const opsetImport = [{ domain: '', version: operatorSet }];
  return toBinary(ModelProtoSchema, create(ModelProtoSchema, { irVersion: 9n, opsetImport, graph }));
}

const compiled = (file: Uint8Array) => Buffer.concat([...compileOnnx(file, undefined, 'fp32').pieces]);
const operatorsOf = (file: Uint8Array) =>
  fromBinary(ModelProtoSchema, file).graph?.node.map(({ opType }) => opType) ?? [];
const rewritten = (file: Uint8Array) =>
  operatorsOf(file).filter((operator) => ['Conv', 'Resize', 'Sum'].includes(operator));

test('channels are reduced before maps are enlarged, and the network gives the same', async (t) => {
  t.timeout(120_000);
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-pointwise-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const [before, after] = [network(), compiled(network())];
  const image = Float32Array.from({ length: 3 * SIDE * SIDE }, (_, at) => Math.sin(at * 12.9898));
  const run = (name: string, file: Uint8Array) => {
    const at = path.join(folder, name);
    writeFileSync(at, file);
    return runNetwork(at, image, 1);
  };
  const [wanted, found] = [await run('before.onnx', before), await run('after.onnx', after)];
  const range = Math.max(...wanted) - Math.min(...wanted);
  t.true(range > 10);
  t.true(largestDifference(wanted, found) < 2e-6 * range);
  t.false(operatorsOf(after).includes('Concat'), 'neither the maps nor the sizes are put together');
  t.deepEqual(rewritten(after), ['Conv', 'Conv', 'Resize', 'Conv', 'Conv', 'Sum']);
});

test('a network where that would not be the same, or of no use, keeps its convolution', (t) => {
  const kept: readonly Changes[] = [
    { operatorSet: 17n },
    { wide: true },
    { shared: true },
    { unknown: true },
    { mode: 'nearest' },
    { mode: 'cubic' },
    { counted: true },
    { nested: true },
    { setting: int('exclude_outside', 1) },
    { setting: text('keep_aspect_ratio_policy', 'not_larger') },
  ];
  for (const changes of kept) {
    const file = network(changes);
    t.deepEqual(
      rewritten(compiled(file)),
      rewritten(file),
      `${Object.keys(changes)} ${changes.setting?.name}`,
    );
  }
});
