import { renameSync, rmSync, writeFileSync } from 'node:fs';

/** Writes a line to a file that only its owner can read, atomically: a reader never sees part of it. */
export function writeSecretFile(file: string, line: string): void {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  writeFileSync(part, `${line}\n`, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(part, file);
}
