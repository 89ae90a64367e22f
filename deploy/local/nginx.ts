import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { programOf } from './programs.ts';

const program = programOf('nginx');

/** Why nginx cannot be used; undefined if it can. */
export const nginxMissing = program ? undefined : 'nginx is not installed here (Debian: nginx-light).';

const busy = JSON.stringify({
  errors: [
    {
      title: 'Service unavailable',
      code: 'service_unavailable',
      detail: 'No server can be reached. Try again.',
    },
  ],
});

/**
 * A request whose node dies goes to the next one: the nodes ensure that a repeated request is processed and
 * charged once. The same holds for one that a node refuses while it starts, stops or is overloaded. No node is excluded
 * after a failure (max_fails=0), because a request that finds the other node closing would then have none left. If no
 * node answers, the answer is the API's own 503.
 */
const configuration = (port: number, nodes: readonly number[]) => `
daemon off;
master_process off;
pid nginx.pid;
error_log nginx.log warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path answers;
  fastcgi_temp_path unused1;
  uwsgi_temp_path unused2;
  scgi_temp_path unused3;
  client_max_body_size 64m;
  upstream cutout {
    least_conn;
${nodes.map((node) => `    server 127.0.0.1:${node} max_fails=0;`).join('\n')}
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / {
      proxy_pass http://cutout;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_connect_timeout 2s;
      proxy_read_timeout 150s;
      proxy_next_upstream error http_503 non_idempotent;
      error_page 502 504 = @away;
    }
    location @away {
      default_type application/json;
      add_header Retry-After 2 always;
      add_header Access-Control-Allow-Origin * always;
      return 503 '${busy}';
    }
  }
}
`;

export interface Nginx {
  readonly url: string;
  stop(): Promise<void>;
}

const listens = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** A load balancer on loopback in front of nodes on these ports. */
export async function startNginx(port: number, nodes: readonly number[]): Promise<Nginx> {
  if (program === undefined) throw new Error(nginxMissing);
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-nginx-'));
  writeFileSync(path.join(folder, 'nginx.conf'), configuration(port, nodes));
  const child: ChildProcess = spawn(program, ['-p', folder, '-c', 'nginx.conf', '-e', 'nginx.log'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (text: Buffer) => {
    said = (said + text).slice(-4000);
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  for (const until = performance.now() + 10_000; !(await listens(port)); await sleep(20)) {
    if (child.exitCode === null && performance.now() < until) continue;
    const log = readFileSync(path.join(folder, 'nginx.log'), 'utf8');
    await stop();
    throw new Error(`nginx does not start: ${said} ${log}`);
  }
  return { url: `http://127.0.0.1:${port}`, stop };
}
