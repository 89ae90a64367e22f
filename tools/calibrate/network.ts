import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { quantiseNetwork, readNetwork as read } from '../../src/compiler/compile.ts';
import type { GraphProto, TensorProto } from '../../src/compiler/onnx/onnx_pb.ts';
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
  const network = read(readFileSync(source), [...(features === undefined ? [] : [features]), ...extra]);
  const { graph, floats } = network;
  return {
    graph,
    floats,
    save(file, table) {
      if (table) quantiseNetwork(network, table, false);
      const handle = openSync(file, 'w');
      for (const piece of network.encode()) writeSync(handle, piece);
      closeSync(handle);
    },
  };
}
