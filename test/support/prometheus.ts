import { spawnSync } from 'node:child_process';

/** Why promtool cannot be used; undefined if it can. */
export const promtoolMissing =
  spawnSync('promtool', ['--version']).status === 0
    ? undefined
    : 'promtool (package prometheus) is not installed';

/** Output of promtool for its input or files; `status` 0: valid. */
export function promtool(args: readonly string[], input = ''): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', [...args], { input, encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

/** Samples of the text format: `name{a="b"}` to value. */
export function samplesOf(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, value] = /^([^#].*) (\S+)$/.exec(line) ?? [];
    if (name && value) samples.set(name, Number(value));
  }
  return samples;
}
