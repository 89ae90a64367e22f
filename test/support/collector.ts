import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Cleanup } from './stores.ts';

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: Readonly<Record<string, unknown>>;
  }[];
  readonly status: { readonly code?: number };
}

export interface Collector {
  readonly url: string;
  readonly spans: () => OtlpSpan[];
  /** Everything that was received, as text. */
  readonly text: () => string;
  readonly headers: () => IncomingHttpHeaders;
  readonly paths: () => string[];
}

interface Export {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: OtlpSpan[] }[] }[];
}

/** An OpenTelemetry collector: a port that accepts OTLP over HTTP, in JSON. */
export async function startCollector(t: Cleanup, status = 200): Promise<Collector> {
  const bodies: string[] = [];
  const paths: string[] = [];
  let headers: IncomingHttpHeaders = {};
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString());
      paths.push(req.url ?? '');
      headers = req.headers;
      res.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () =>
      bodies.flatMap((body) =>
        (JSON.parse(body) as Export).resourceSpans.flatMap(({ scopeSpans }) =>
          scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    text: () => bodies.join('\n'),
    headers: () => headers,
    paths: () => paths,
  };
}
