import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';

export interface Answer {
  /** 0 if there was no answer. */
  readonly status: number;
  /** `ok`, the error's code, or the code of a connection error. */
  readonly code: string;
  /** From the first byte sent to the last one received. */
  readonly ms: number;
  /** Milliseconds of each stage of the server's work, from `Server-Timing`; empty without that header. */
  readonly stages: Readonly<Record<string, number>>;
  readonly replayed: boolean;
  readonly body: Buffer;
}

export type Fields = Readonly<Record<string, string>>;

interface SendOptions {
  /** Send the bytes unchanged. */
  readonly same?: boolean;
  readonly idempotencyKey?: string;
}

export interface Client {
  /**
   * One complete request; never rejects. Every call sends different bytes (eight are appended to the image,
   * which every decoder ignores), so that no cached result answers, unless `same`.
   */
  cutout(image: Buffer, fields: Fields, options?: SendOptions): Promise<Answer>;
  close(): Promise<void>;
}

const BOUNDARY = 'boundary-of-the-bench-6c1f0e';

function multipart(image: readonly Buffer[], fields: Fields): Buffer {
  const part = (name: string, more: string, value: readonly Buffer[]) => [
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`),
    ...value,
    Buffer.from('\r\n'),
  ];
  return Buffer.concat([
    ...Object.entries(fields).flatMap(([name, value]) => part(name, '', [Buffer.from(value)])),
    ...part('image_file', '; filename="photo.jpg"', image),
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ]);
}

/** `decode;dur=12.3, infer;dur=1600` → { decode: 12.3, infer: 1600 } */
export function parseServerTiming(header: string): Readonly<Record<string, number>> {
  const entries = header.split(',').map((entry) => /^\s*([\w-]+)\s*;\s*dur=([\d.]+)/.exec(entry));
  return Object.fromEntries(
    entries.filter((found) => found !== null).map(([, name, duration]) => [name, Number(duration)]),
  );
}

function codeOf(status: number, body: Buffer): string {
  if (status === 200) return 'ok';
  try {
    const { errors } = JSON.parse(body.toString()) as { errors?: readonly { code?: string }[] };
    return errors?.[0]?.code ?? String(status);
  } catch {
    return String(status);
  }
}

const headerOf = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(', ') : (value ?? '');

/** A client with unlimited connections, so that nothing waits on this side. */
export function openClient({ url, key }: { readonly url: string; readonly key: string }): Client {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections: null, headersTimeout: 600_000, bodyTimeout: 600_000 });
  const session = randomBytes(4);
  let sent = 0;
  const distinct = () => {
    const tail = Buffer.alloc(8, session);
    tail.writeUInt32LE(sent++, 4);
    return tail;
  };
  return {
    async cutout(image, fields, { same = false, idempotencyKey } = {}) {
      const body = multipart(same ? [image] : [image, distinct()], fields);
      const begin = performance.now();
      try {
        const answer = await pool.request({
          path: `${pathname.replace(/\/$/, '')}/v1.0/removebg`,
          method: 'POST',
          headers: {
            'x-api-key': key,
            'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
            ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
          },
          body,
        });
        const received = Buffer.from(await answer.body.arrayBuffer());
        return {
          status: answer.statusCode,
          code: codeOf(answer.statusCode, received),
          ms: performance.now() - begin,
          stages: parseServerTiming(headerOf(answer.headers['server-timing'])),
          replayed: headerOf(answer.headers['idempotent-replayed']) === 'true',
          body: received,
        };
      } catch (error) {
        const { code = 'connection failed' } = error as { code?: string };
        return {
          status: 0,
          code,
          ms: performance.now() - begin,
          stages: {},
          replayed: false,
          body: Buffer.alloc(0),
        };
      }
    },
    close: () => pool.close(),
  };
}

/** The answer, or an Error with the status and code received instead. */
export function expectOk(answer: Answer): Answer {
  if (answer.status === 200) return answer;
  throw new Error(
    `the server answered ${answer.status} ${answer.code} ${answer.body.subarray(0, 300).toString()}`,
  );
}
