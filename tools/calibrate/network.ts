import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { fromBinary } from '@bufbuild/protobuf';
import { freeBatch } from '../../src/compiler/onnx/batch.ts';
import { floatReader, halfWidener } from '../../src/compiler/onnx/half.ts';
import {
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  type TensorProto,
} from '../../src/compiler/onnx/onnx_pb.ts';
import { raiseOperatorSet } from '../../src/compiler/onnx/operatorSet.ts';
import { dropUnused, keepOutputs } from '../../src/compiler/onnx/prune.ts';
import { freeSize } from '../../src/compiler/onnx/size.ts';
import { hasHalf, widen } from '../../src/compiler/onnx/widen.ts';
import { encodeModel } from '../../src/compiler/onnx/write.ts';
import { quantise } from '../../src/compiler/quantise/graph.ts';
import type { QuantisationTable } from '../../src/compiler/quantise/table.ts';

/** The network in 32-bit floats and its parsed parts. */
export interface Floats {
  readonly graph: GraphProto;
  readonly floats: (tensor: TensorProto) => Float32Array;
  /** Writes the network, or its 8-bit form; may be called once. */
  readonly save: (file: string, table?: QuantisationTable) => void;
}

/** Reads the published file as preparation does, with the tensors `extra` as additional outputs. */
export function readNetwork(
  source: string,
  features: string | undefined,
  extra: readonly string[] = [],
): Floats {
  const model: ModelProto = fromBinary(ModelProtoSchema, readFileSync(source));
  const { graph } = model;
  const alpha = graph?.output[0]?.name;
  if (!graph || alpha === undefined) throw new Error(`${source} has no output`);
  const widenBytes = halfWidener();
  keepOutputs(graph, [...new Set([alpha, ...(features === undefined ? [] : [features]), ...extra])]);
  const widened = hasHalf(graph) ? widen(graph, widenBytes) : new Set<TensorProto>();
  dropUnused(graph);
  freeSize(graph);
  freeBatch(graph);
  const floats = floatReader(widened, widenBytes);
  return {
    graph,
    floats,
    save(file, table) {
      if (table) {
        raiseOperatorSet(model);
        quantise(graph, table, floats);
        dropUnused(graph);
      }
      const handle = openSync(file, 'w');
      for (const piece of encodeModel(model, widened, widenBytes)) writeSync(handle, piece);
      closeSync(handle);
    },
  };
}
