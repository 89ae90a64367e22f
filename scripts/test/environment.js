import { mkdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inBuild } from '../setup/paths.js';
import { processSettings } from '../setup/process.js';

/**
 * Variables that tests inherit: programs and the machine's temporary folder and certificates are
 * found, output has its colours, and the suite's own settings apply. Nothing else reaches a test or a
 * program that it starts: no CUTOUT_ setting, proxy, database, time zone or language of its user.
 */
const KEPT = [
  /^(PATH|TMPDIR|LD_LIBRARY_PATH|TERM|COLORTERM|FORCE_COLOR|NO_COLOR)$/,
  /^(CC|CXX|CUDA_\w+|NVIDIA_\w+)$/,
  /^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|NODE_V8_COVERAGE|AVA_PATH|PYENV_ROOT|PYTHONUSERBASE)$/,
  /^ONNXRUNTIME_INCLUDE_DIR$/,
  /^CUTOUT_(TEST|FUZZ)_\w+$/,
];

/** An empty home folder, so that settings of curl, npm, PostgreSQL or git in the owner's home change no test. */
const home = inBuild('test-home');

/**
 * The environment that tests run in.
 * @param {Readonly<Record<string, string | undefined>>} surroundings
 * @returns {Record<string, string>}
 */
export function testEnvironment(surroundings) {
  const kept = Object.entries(surroundings).filter(([name]) => KEPT.some((names) => names.test(name)));
  mkdirSync(home, { recursive: true });
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    // The owner's Python and its packages.
    PYENV_ROOT: surroundings.PYENV_ROOT ?? path.join(os.homedir(), '.pyenv'),
    PYTHONUSERBASE: surroundings.PYTHONUSERBASE ?? path.join(os.homedir(), '.local'),
    // Tests that run ONNX Runtime by itself send nothing and leave no files of its telemetry.
    ORT_DISABLE_TELEMETRY: '1',
    TZ: 'UTC',
    LANG: 'C.UTF-8',
    // Hundreds of processes load the same modules, and compile them once. Coverage would be less exact.
    ...(!surroundings.NODE_V8_COVERAGE && { NODE_COMPILE_CACHE: inBuild('compile-cache') }),
    ...processSettings(),
  };
}
