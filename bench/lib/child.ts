import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

interface ChildOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Runs a Node script in a separate process and collects the lines of JSON that it prints; other lines are
 * skipped, because libraries print too. Rejects on an exit status other than 0; standard error is passed on.
 */
export async function jsonLines(
  script: string,
  args: readonly (string | number)[],
  { cwd, env }: ChildOptions = {},
): Promise<readonly unknown[]> {
  const child = spawn(process.execPath, [script, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(cwd && { cwd }),
    ...(env && { env: { ...process.env, ...env } }),
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const found: unknown[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (/^[[{]/.test(line)) found.push(JSON.parse(line));
  }
  const code = await ended;
  if (code !== 0) throw new Error(`${script.split('/').at(-1)} ended with ${code}`);
  return found;
}
