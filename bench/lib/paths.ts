import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAddon } from '../../src/engine/addon.ts';
import { operatorsOf } from '../../src/models/precision.ts';

/** Root of the repository; this file runs as build/ts/bench/lib/paths.js. */
export const root = fileURLToPath(new URL('../../../../', import.meta.url));
export const main = path.join(root, 'build', 'ts', 'src', 'main.js');
/** The addon with the individual kernels; built by `npm run setup -- --tests`. */
export const testAddon = path.join(root, 'build', 'native', 'Release', 'cutout_test.node');
export const noTestAddon = (): string | undefined =>
  existsSync(testAddon) ? undefined : 'the kernels are not built: run `npm run setup -- --tests`';
export const peersFolder = path.join(root, 'bench', 'peers');

/** Folder of the networks, as the server reads it. */
export const modelsFolder = (): string =>
  process.env['CUTOUT_MODELS_DIR'] ?? path.join(root, 'data', 'models');
export const preparedNetwork = (name = 'isnet'): string => path.join(modelsFolder(), name, 'prepared.onnx');
export const eightBitNetwork = (name = 'isnet'): string =>
  path.join(modelsFolder(), name, 'prepared.int8.onnx');
export const operatorsNetwork = (name = 'isnet'): string =>
  path.join(modelsFolder(), name, 'prepared.int8-operators.onnx');

export const bf16Network = (name = 'isnet'): string => path.join(modelsFolder(), name, 'prepared.bf16.onnx');

/** What a network is compared in: in 8 bits with Cutout's operators and with those of ONNX Runtime, in bf16, in floats. */
export const preparedForms = (name: string) => ({
  own: operatorsNetwork(name),
  eight: eightBitNetwork(name),
  bf16: bf16Network(name),
  floats: preparedNetwork(name),
});
export type PreparedForm = keyof ReturnType<typeof preparedForms>;

/** Instruction set of Cutout's operators that a server uses on this machine; undefined: none. */
export function usedOperators(precision: 'int8' | 'bf16' = 'int8'): string | undefined {
  const requested = process.env['CUTOUT_OPERATORS'] ?? 'auto';
  if (requested === 'off') return undefined;
  const known = operatorsOf(precision, loadAddon().versions().operators);
  const named = known.find((name) => name === requested);
  return requested === 'auto' || precision === 'bf16' ? (named ?? known[0]) : requested;
}

/** For bare ONNX Runtime: the file with its own operators, in the precision that a server uses. */
export const bareNetwork = (): string =>
  process.env['CUTOUT_PRECISION'] === 'fp32' ? preparedNetwork() : eightBitNetwork();

/** The file that a server uses on this machine (src/models/precision.ts). */
export function usedNetwork(): string {
  const own = process.env['CUTOUT_PRECISION'] !== 'fp32' && usedOperators() !== undefined;
  return own ? operatorsNetwork() : bareNetwork();
}

/** A compiled script of this folder that runs in a separate process. */
export const childScript = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
