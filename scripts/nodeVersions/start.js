import { spawn } from 'node:child_process';
import { cpSync, createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { inBuild } from '../setup/paths.js';
import { SetupError } from '../setup/step.js';
import { watchStarted } from '../startedServer.js';

/** For a start that pulls its networks on a busy machine. */
const LIMIT_MS = 600_000;
const KEY = 'key-of-the-start-that-is-tried';

const drawing = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="480"><rect width="640" height="480" fill="#dfe6ea"/>
  <ellipse cx="320" cy="300" rx="130" ry="170" fill="#a3432c"/><circle cx="320" cy="130" r="75" fill="#e0b08a"/></svg>`,
);

/** One image through the server: its subject must stay, its background must go. */
async function cutOut(url, sharp) {
  const form = new FormData();
  form.append('image_file', new Blob([await sharp(drawing).jpeg().toBuffer()]), 'image.jpg');
  form.append('size', 'full');
  const answer = await fetch(`${url}/v1.0/removebg`, {
    method: 'POST',
    headers: { 'X-Api-Key': KEY },
    body: form,
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status !== 200) throw new SetupError(`It answered with ${answer.status}: ${bytes}`);
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const alpha = (x, y) => data[(y * info.width + x) * 4 + 3];
  const right = info.width === 640 && info.height === 480 && alpha(320, 280) > 200 && alpha(10, 10) < 50;
  if (!right)
    throw new SetupError(`That is no cut-out: ${JSON.stringify(info)}, ${alpha(320, 280)}, ${alpha(10, 10)}`);
}

/**
 * `npm start` in a clone until it listens, one cut-out, an orderly exit. Rejects with a SetupError that quotes its
 * output.
 */
export async function proveStart({ folder, env, log }) {
  const data = mkdtempSync(inBuild('nodes', 'data-'));
  const given = process.env.CUTOUT_TEST_MODELS;
  // A copy, because a start writes its own files beside them.
  if (given) cpSync(given, path.join(data, 'models'), { recursive: true, dereference: true });
  const child = spawn('npm', ['start'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...env,
      CUTOUT_PORT: '0',
      CUTOUT_API_KEY: KEY,
      CUTOUT_DATA_DIR: data,
    },
  });
  const file = createWriteStream(inBuild('logs', `${log}.log`));
  const server = watchStarted(child, (chunk) => file.write(chunk));
  const timer = setTimeout(() => child.kill('SIGTERM'), LIMIT_MS);
  try {
    const url = await server.url.catch((error) => {
      throw new SetupError(error.message);
    });
    await cutOut(url, createRequire(path.join(folder, 'package.json'))('sharp'));
    child.kill('SIGTERM');
    const code = await server.ended;
    if (code !== 0)
      throw new SetupError(`After SIGTERM it ended with ${code}:\n\n${server.output().slice(-4000)}`);
  } finally {
    clearTimeout(timer);
    child.kill('SIGTERM');
    await server.ended;
    file.end();
    rmSync(data, { recursive: true, force: true });
  }
}
