import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAddon } from '../../src/engine/addon.ts';
import { dotProductOf, fasterOperators } from '../../src/models/preparedForm.ts';

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

/** Instruction set of Cutout's operators that a server uses on this machine; undefined: none. */
export function usedOperators(): string | undefined {
  const requested = process.env['CUTOUT_OPERATORS'] ?? 'auto';
  if (requested === 'off') return undefined;
  return requested === 'auto' ? fasterOperators('int8', loadAddon().versions()) : requested;
}

/** For bare ONNX Runtime: the file with its own operators, in the precision that a server uses on this machine. */
export const bareNetwork = (): string =>
  process.env['CUTOUT_PRECISION'] !== 'fp32' &&
  dotProductOf(loadAddon().versions().instructionSets) !== undefined
    ? eightBitNetwork()
    : preparedNetwork();

/** The file that a server uses on this machine (src/models/preparedForm.ts). */
export function usedNetwork(): string {
  const own = process.env['CUTOUT_PRECISION'] !== 'fp32' && usedOperators() !== undefined;
  return own ? operatorsNetwork() : bareNetwork();
}

/** A compiled script of this folder that runs in a separate process. */
export const childScript = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
