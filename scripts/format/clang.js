import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { inRoot, root } from '../setup/paths.js';

const FOLDERS = ['native', 'binding', 'test'];

function sources() {
  return FOLDERS.flatMap((folder) =>
    readdirSync(inRoot(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(h|cc|cu)$/.test(name))
      .map((name) => path.join(folder, name)),
  );
}

/** Checks or corrects the format of the C++ files. Resolves to whether all of them are formatted now. */
export function clangFormat({ write }) {
  const tool = inRoot('node_modules', 'clang-format', 'index.js');
  const mode = write ? ['-i'] : ['--dry-run', '--Werror'];
  return (
    spawnSync(process.execPath, [tool, ...mode, ...sources()], { cwd: root, stdio: 'inherit' }).status === 0
  );
}
