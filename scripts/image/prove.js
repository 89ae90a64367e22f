import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { inBuild } from '../setup/paths.js';
import { SetupError } from '../setup/step.js';
import { certificates } from './root.js';

/** Size of a tree on disk, in bytes. */
export const sizeOf = (folder) =>
  Number(execFileSync('du', ['-s', '--block-size=1', folder], { encoding: 'utf8' }).split('\t')[0]);

/**
 * Read-only root, /tmp in memory, /data from outside, the image's user and no capabilities: the environment of
 * `docker run --read-only --tmpfs /tmp --cap-drop ALL -v …:/data` gives.
 */
const contained = `
root=$1; data=$2; user=$3; group=$4; shift 4
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind "$data" "$root/data"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --bounding-set=-all "$@"
`;

function command({ root, env, user, cwd }, data, args, more = {}) {
  const [uid, gid] = user.split(':');
  const all = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...env, ...more };
  return [
    'env',
    [
      '-i',
      ...Object.entries(all).map(([name, value]) => `${name}=${value}`),
      'unshare',
      '--mount',
      'sh',
      '-ec',
      contained,
      'sh',
      root,
      data,
      uid,
      gid,
      'sh',
      '-c',
      `cd ${cwd} && exec "$@"`,
      'sh',
      ...args,
    ],
  ];
}

const subject = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="480"><rect width="640" height="480" fill="#dfe6ea"/>
  <ellipse cx="320" cy="300" rx="130" ry="170" fill="#a3432c"/><circle cx="320" cy="130" r="75" fill="#e0b08a"/></svg>`,
);

/**
 * Starts the image's service as its user on a read-only root and cuts out one image. Networks come from `models`,
 * else from the registry, `offline` from the image itself. Throws if anything fails.
 */
export async function prove(image, { models, offline }) {
  const data = mkdtempSync(path.join(inBuild('image'), 'data-'));
  const [uid, gid] = image.user.split(':').map(Number);
  if (!uid) throw new SetupError('The image runs as root.');
  if (models && existsSync(models)) cpSync(models, path.join(data, 'models'), { recursive: true });
  const settings = { CUTOUT_API_KEY: 'key-of-the-image-proof' };
  // Nothing outside the image can be used.
  if (offline) settings.npm_config_registry = 'http://127.0.0.1:1/';
  // The machine may reach the registry through a proxy whose certificate only it knows.
  if (existsSync(certificates)) {
    cpSync(certificates, path.join(data, 'certificates.crt'));
    settings.npm_config_cafile = '/data/certificates.crt';
  }
  execFileSync('chown', ['-R', `${uid}:${gid}`, data]);
  chownSync(data, uid, gid);
  const port = String(20_000 + Math.floor(Math.random() * 10_000));
  settings.CUTOUT_PORT = port;
  const [program, args] = command(image, data, image.entry, settings);
  const started = performance.now();
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
  let over;
  void ended.then((code) => {
    over = code;
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    for (;;) {
      if (over !== undefined) throw new SetupError(`The service ended with ${over}:\n${output}`);
      if (performance.now() - started > 300_000) throw new SetupError(`It was not ready in time:\n${output}`);
      const ready = await fetch(`${url}/health/ready`).catch(() => undefined);
      if (ready?.ok) break;
      await sleep(100);
    }
    const readyMs = performance.now() - started;
    const [check, checkArgs] = command(image, data, image.health, settings);
    const healthy = spawnSync(check, checkArgs, { encoding: 'utf8' });
    if (healthy.status !== 0) throw new SetupError(`The health check failed: ${healthy.stderr}`);

    const form = new FormData();
    form.append('image_file', new Blob([await sharp(subject).jpeg().toBuffer()]));
    form.append('size', 'full');
    const answer = await fetch(`${url}/v1.0/removebg`, {
      method: 'POST',
      headers: { 'X-Api-Key': settings.CUTOUT_API_KEY },
      body: form,
    });
    if (answer.status !== 200) throw new SetupError(`${answer.status}: ${await answer.text()}\n${output}`);
    const { width, height, channels } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
    if (width !== 640 || height !== 480 || channels !== 4) throw new SetupError('That is no cut-out.');

    const id = spawnSync('ps', ['-o', 'uid=', '-p', String(child.pid)], { encoding: 'utf8' }).stdout.trim();
    if (id !== String(uid)) throw new SetupError(`It runs as user ${id}.`);
    const allocator = /"allocator":"([^"]+)"/.exec(output)?.[1] ?? 'not reported';
    child.kill('SIGTERM');
    const code = await ended;
    if (code !== 0) throw new SetupError(`After SIGTERM it ended with ${code}.`);
    return { readyMs, allocator };
  } finally {
    child.kill('SIGKILL');
    await ended;
    rmSync(data, { recursive: true, force: true });
  }
}

/** Its user may write to one folder of the image only. */
export function writable({ root, user }) {
  const [uid] = user.split(':');
  const found = execFileSync(
    'find',
    [
      root,
      '-xdev',
      '-path',
      `${root}/dev`,
      '-prune',
      '-o',
      '(',
      '-uid',
      uid,
      '-o',
      '-perm',
      '-0002',
      ')',
      '!',
      '-type',
      'l',
      '!',
      '-perm',
      '-1000',
      '-print',
    ],
    { encoding: 'utf8' },
  );
  return found
    .split('\n')
    .filter((file) => file !== '')
    .map((file) => file.slice(root.length));
}
