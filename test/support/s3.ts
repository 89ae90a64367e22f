import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { S3Options } from '../../src/improve/bucket.ts';
import type { Cleanup } from './stores.ts';

const secretAccessKey = 'secret-of-this-test';

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

/** AWS signature version 4, from its specification: whether this request was signed with the secret. */
function isSigned(req: IncomingMessage, body: Buffer): boolean {
  const [, access, date = '', region = '', service = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d+)\/([\w-]+)\/(\w+)\/aws4_request, ?SignedHeaders=([\w;-]+), ?Signature=(\w+)$/.exec(
      req.headers.authorization ?? '',
    ) ?? [];
  const url = new URL(req.url ?? '', 'http://host');
  const sent = String(req.headers['x-amz-content-sha256']);
  if (access !== 'access' || (sent !== 'UNSIGNED-PAYLOAD' && sent !== sha256(body))) return false;
  const headers = names.split(';').map((name) => `${name}:${String(req.headers[name]).trim()}\n`);
  const query = [...url.searchParams].map((pair) => pair.map(encodeURIComponent).join('=')).sort();
  const canonical = [req.method, url.pathname, query.join('&'), headers.join(''), names, sent].join('\n');
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', req.headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const expected = hmac(key, text);
  const given = Buffer.from(signature, 'hex');
  return given.length === expected.length && timingSafeEqual(given, expected);
}

export interface S3Like {
  readonly options: S3Options;
  /** Contents of the bucket: path → bytes and type. */
  readonly objects: Map<string, { bytes: Buffer; type: string | undefined }>;
  /** While true, every request is answered with 503. */
  broken: boolean;
}

/** A bucket in memory with the required part of the protocol; checks every signature. */
export async function s3Like(t: Cleanup): Promise<S3Like> {
  const objects: S3Like['objects'] = new Map();
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const body = Buffer.concat(chunks);
      const name = decodeURIComponent(new URL(req.url ?? '', 'http://host').pathname);
      const answer = (status: number, bytes: Buffer | string = '') => res.writeHead(status).end(bytes);
      if (bucket.broken) return answer(503, '<Error><Code>SlowDown</Code></Error>');
      if (!isSigned(req, body)) return answer(403, '<Error><Code>SignatureDoesNotMatch</Code></Error>');
      if (req.method === 'PUT') {
        objects.set(name, { bytes: body, type: req.headers['content-type'] });
        return answer(200);
      }
      if (req.method === 'DELETE') {
        objects.delete(name);
        return answer(204);
      }
      const object = objects.get(name);
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(req.headers.range)) ?? [];
      if (object && from !== undefined)
        return answer(206, object.bytes.subarray(Number(from), Number(to) + 1));
      return object ? answer(200, object.bytes) : answer(404, '<Error><Code>NoSuchKey</Code></Error>');
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/images`;
  const options = { endpoint, region: 'eu-central-1', accessKeyId: 'access', secretAccessKey };
  const bucket: S3Like = { options, objects, broken: false };
  return bucket;
}
