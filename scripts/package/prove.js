import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { baseRoot, certificates, cloneRoot, inside } from '../image/root.js';
import { SetupError } from '../setup/step.js';

/** For an install and a start with its pull on a busy machine. */
const LIMIT_MS = 600_000;
const KEY = 'key-of-the-package-proof';
/** What an installed package does without. */
const tools = ['cc', 'c++', 'gcc', 'g++', 'clang', 'make', 'cmake', 'ninja', 'python3', 'git'];

/** Why the proof cannot be made here, or ''. */
export function missingForProof() {
  if (process.getuid?.() !== 0) return 'rights: only root can make a root of its own';
  if (!['/usr/sbin/debootstrap', '/usr/bin/debootstrap'].some((file) => existsSync(file)))
    return 'debootstrap';
  return '';
}

/** In namespaces of its own, so that every process ends with the first. */
const contained = `
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
exec chroot "$1" sh -ec "cd /app; exec npx cutout serve"
`;

const drawing = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="480"><rect width="640" height="480" fill="#dfe6ea"/>
  <ellipse cx="320" cy="300" rx="130" ry="170" fill="#a3432c"/><circle cx="320" cy="130" r="75" fill="#e0b08a"/></svg>`,
);

/** A cut-out by curl; throws if it is none. */
async function cutOut(url, folder) {
  const [from, to] = [path.join(folder, 'drawing.jpg'), path.join(folder, 'cutout.png')];
  writeFileSync(from, await sharp(drawing).jpeg().toBuffer());
  const form = ['-H', `X-Api-Key: ${KEY}`, '-F', `image_file=@${from}`, '-F', 'size=full'];
  execFileSync('curl', ['--silent', '--show-error', '--fail', ...form, '-o', to, `${url}/v1.0/removebg`]);
  const { data, info } = await sharp(to).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  const alpha = (x, y) => data[(y * info.width + x) * 4 + 3];
  if (info.width !== 640 || info.height !== 480 || alpha(320, 280) <= 200 || alpha(10, 10) >= 50)
    throw new SetupError(`That is no cut-out: ${JSON.stringify(info)}, ${alpha(320, 280)}, ${alpha(10, 10)}`);
}

/** `npx cutout serve` in the root until it is ready, and a cut-out from outside. Resolves with the time to ready. */
async function serve(root, work) {
  const port = String(20_000 + Math.floor(Math.random() * 10_000));
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/root',
    // The machine may reach the registry through a proxy whose certificate only it knows.
    npm_config_cafile: '/tmp/certificates.crt',
    CUTOUT_PORT: port,
    CUTOUT_API_KEY: KEY,
  };
  if (existsSync(certificates)) cpSync(certificates, path.join(root, env.npm_config_cafile));
  else delete env.npm_config_cafile;
  const started = performance.now();
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child'];
  const child = spawn('unshare', [...namespaces, 'sh', '-ec', contained, 'sh', root], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output = (output + chunk).slice(-8000);
    });
  let over;
  const ended = new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => resolve(code ?? signal));
  }).then((code) => {
    over = code;
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    for (;;) {
      if (over !== undefined) throw new SetupError(`The service ended with ${over}:\n${output}`);
      if (performance.now() - started > LIMIT_MS)
        throw new SetupError(`It was not ready in time:\n${output}`);
      const ready = await fetch(`${url}/health/ready`).catch(() => undefined);
      if (ready?.ok) break;
      await sleep(100);
    }
    const readyMs = performance.now() - started;
    await cutOut(url, work);
    return readyMs;
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

/**
 * Installs an archive with npm in a fresh Debian that has Node.js, npm and nothing to compile with, and no registry at
 * that time; starts it there and cuts out an image. Throws if anything fails.
 */
export async function prove(archive) {
  const base = await baseRoot('npm run package -- --prove', () => {});
  const work = mkdtempSync(path.join(tmpdir(), 'cutout-package-'));
  const root = path.join(work, 'root');
  try {
    await cloneRoot(base, root);
    const unexpected = tools.map((tool) => `! command -v ${tool}`).join(' && ');
    await inside(root, unexpected, { log: 'package-tools' });
    mkdirSync(path.join(root, 'app'));
    cpSync(archive, path.join(root, 'app', path.basename(archive)));
    const started = performance.now();
    await inside(root, `npm install ./${path.basename(archive)}`, {
      cwd: '/app',
      env: { npm_config_registry: 'http://127.0.0.1:1/' },
      log: 'package-install',
    });
    const installMs = performance.now() - started;
    return { installMs, readyMs: await serve(root, work) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
