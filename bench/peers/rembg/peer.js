// Adapter (bench/peers/README.md) for the program rembg: its own HTTP server, with the network kept between images.
// `rembg` must be on the path (or named by REMBG) and may load its network on the first image.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';

const program = process.env.REMBG ?? 'rembg';
const model = process.env.REMBG_MODEL ?? 'isnet-general-use';

export const about = {
  title: `rembg (${model})`,
  licence: 'MIT',
  weights: model === 'isnet-general-use' ? 'isnet' : model,
};

let server;
let address;

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

async function cut(bytes) {
  const form = new FormData();
  form.set('file', new Blob([bytes], { type: 'image/jpeg' }), 'photo.jpg');
  form.set('model', model);
  const answer = await fetch(`${address}/api/remove`, { method: 'POST', body: form });
  const body = Buffer.from(await answer.arrayBuffer());
  if (!answer.ok) throw new Error(`rembg answered ${answer.status} ${body.subarray(0, 300)}`);
  return body;
}

export async function prepare({ warmUp }) {
  const port = await freePort();
  address = `http://127.0.0.1:${port}`;
  server = spawn(program, ['s', '--host', '127.0.0.1', '--port', String(port), '--no-ui'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const failed = new Promise((_, reject) => {
    server.on('error', (error) => reject(new Error(`${program} cannot be started: ${error.message}`)));
    server.on('close', (code) => reject(new Error(`${program} ended with ${code}`)));
  });
  failed.catch(() => {});
  const up = async () => {
    while (
      !(await fetch(`${address}/api`).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await new Promise((resolve) => setTimeout(resolve, 200));
  };
  await Promise.race([up(), failed]);
  await cut(await readFile(warmUp));
}

export async function run(file) {
  const bytes = await readFile(file);
  const started = performance.now();
  const png = await cut(bytes);
  return { png, ms: performance.now() - started };
}

export async function close() {
  server?.removeAllListeners('close');
  server?.kill('SIGTERM');
}
