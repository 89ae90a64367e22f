import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { inBuild } from './paths.js';

const OLDEST = 13;

/** Where pip puts it (nvcc.txt), then the search path, then where NVIDIA's packages put it. */
const candidates = (environment) => [
  inBuild('nvcc', 'nvidia', 'cu13', 'bin', 'nvcc'),
  ...(environment.PATH ?? '').split(path.delimiter).map((folder) => path.join(folder, 'nvcc')),
  '/usr/local/cuda/bin/nvcc',
];

/** Whether a file is an nvcc that compiles for every GPU that CMakeLists.txt names. */
function fits(file) {
  try {
    accessSync(file, constants.X_OK);
    const text = execFileSync(file, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number(/release (\d+)/.exec(text)?.[1]) >= OLDEST;
  } catch {
    return false;
  }
}

/** Path of nvcc, version 13 or newer, or undefined. */
export const findNvcc = (environment = process.env, files = candidates(environment)) => files.find(fits);
