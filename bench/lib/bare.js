import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('bare_run.js', import.meta.url));

/** `processes` × `threads` bare runs side by side for `seconds`; all times in milliseconds. */
export async function bareRuns(network, { processes, threads, seconds }) {
  const runs = await Promise.all(
    Array.from({ length: processes }, () => {
      const child = spawn(process.execPath, [script, network, String(threads), String(seconds)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let text = '';
      child.stdout.on('data', (chunk) => {
        text += chunk;
      });
      return new Promise((resolve, reject) =>
        child.on('close', (code) =>
          code === 0
            ? resolve(JSON.parse(text.split('\n')[1]))
            : reject(new Error(`bare run ended with ${code}`)),
        ),
      );
    }),
  );
  return {
    times: runs.flat(),
    perSecond: runs.reduce((sum, times) => sum + 1000 / (times.reduce((a, b) => a + b, 0) / times.length), 0),
  };
}
