import { renameSync, rmSync, writeFileSync } from 'node:fs';

/** A line for the eyes of the file's owner alone. Whole or not at all: a reader never sees half of it. */
export function writeSecretFile(file: string, line: string): void {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  writeFileSync(part, `${line}\n`, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(part, file);
}
