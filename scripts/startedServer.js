/**
 * Watches a started `cutout serve` or `npm start`, whose output is piped.
 * @param {import('node:child_process').ChildProcess} child
 * @param {(chunk: Buffer) => void} onOutput
 * @returns `url`: the address that it prints once it listens; rejects with its output if it ends before. `ended`: exit status,
 * signal or message, and never rejects. `output`: what it has printed so far.
 */
export function watchStarted(child, onOutput = () => {}) {
  let output = '';
  const ended = new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  const url = new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        onOutput(chunk);
        output += chunk;
        const listening = /listens on (http:\S+)[\s\S]*removebg\n/.exec(output)?.[1];
        if (listening) resolve(listening);
      });
    void ended.then((code) =>
      reject(new Error(`It ended with ${code} before it listened:\n\n${output.slice(-4000)}`)),
    );
  });
  url.catch(() => {});
  return { url, ended, output: () => output };
}
