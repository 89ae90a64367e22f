import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';

/** The name compiled into the clients. */
export const publishedHost = 'api.remove.bg';

export interface TlsFront {
  readonly port: number;
  /** The self-signed certificate, which a client has to trust. */
  readonly certificate: string;
}

async function certificate(folder: string): Promise<{ key: string; cert: string }> {
  const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  const subject = ['-subj', `/CN=${publishedHost}`, '-addext', `subjectAltName=DNS:${publishedHost}`];
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject],
    ...['-keyout', key, '-out', cert],
  ]);
  return { key, cert };
}

/**
 * A TLS proxy in front of the service, as docs/migrating.md describes: ends the encryption and passes requests on
 * unchanged. Needs the program openssl.
 */
export async function tlsFront(t: ExecutionContext, folder: string, url: string): Promise<TlsFront> {
  mkdirSync(folder, { recursive: true });
  const files = await certificate(folder);
  const { hostname, port } = new URL(url);
  const front = createServer({ key: readFileSync(files.key), cert: readFileSync(files.cert) }, (req, res) => {
    const { method, url: target, headers } = req;
    let answered = false;
    const onward = request({ hostname, port, method, path: target, headers }, (answer) => {
      answered = true;
      // Each side decides how long its connection lives.
      const { connection: _, 'keep-alive': __, ...headers } = answer.headers;
      res.writeHead(answer.statusCode ?? 502, headers);
      answer.pipe(res);
    });
    // A service that refuses an upload may close before all of it is passed on; its answer still counts.
    onward.on('error', () => {
      if (!answered) res.destroy();
    });
    req.pipe(onward);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    front.closeAllConnections();
    front.close();
  });
  return { port: (front.address() as AddressInfo).port, certificate: files.cert };
}
