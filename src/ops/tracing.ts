import {
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from './log.ts';
import { isProbe, type Recorder, type RequestRecord } from './record.ts';

interface TracingOptions {
  /** OTLP over HTTP: address of the collector; `/v1/traces` is appended if it has no path. */
  readonly url: string;
  /** Sent with every export, for example an authorization. */
  readonly headers: Readonly<Record<string, string>>;
  readonly version: string;
  readonly logger: Logger;
}

/** https://www.w3.org/TR/trace-context/#traceparent-header; later versions may append fields. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** Context of the caller's span, our parent; the root context if the header is missing or malformed. */
function parentOf(header: string): Context {
  const [, traceId, spanId, flags] = traceparent.exec(header) ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

const endpoint = (text: string): string => {
  const url = new URL(text);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url.href;
};

/** `inputPixels` as `cutout.input_pixels`. */
const ownName = (name: string) => `cutout.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;

/** Attribute names of OpenTelemetry's conventions where they exist, else ours: those of the log line. */
function attributesOf({ requestId, method, route, status, account, attributes }: RequestRecord) {
  const { error, ...others } = attributes;
  const own = { requestId, ...(account !== undefined && { account }), ...others };
  return {
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
    ...(error !== undefined && { 'error.type': error }),
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [ownName(name), value])),
  };
}

/**
 * Exports one span per request and one per stage to a collector. Spans are created when the request is
 * finished, from what was recorded: no context is passed through the program, and without a collector no
 * library is loaded. `close` exports what is pending, within a few seconds.
 */
export function openTracing({ url, headers, version, logger }: TracingOptions) {
  // The library reports failed exports only here.
  const tell = (message: string) => logger.warn({ tracing: message }, 'tracing');
  const quiet = () => {};
  diag.setLogger(
    { error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'cutout', 'service.version': version }),
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: endpoint(url), headers: { ...headers }, timeoutMillis: 5000 }),
        scheduledDelayMillis: 2000,
      }),
    ],
  });
  const tracer = provider.getTracer('cutout', version);

  const record: Recorder = (request) => {
    if (isProbe(request.route)) return;
    // The wall clock may be set; all times of a request are derived from its value at the end.
    const epoch = Date.now() - performance.now();
    const startTime = epoch + request.start;
    const name = `${request.method} ${request.route}`;
    const options = { startTime, kind: SpanKind.SERVER, attributes: attributesOf(request) };
    const span = tracer.startSpan(name, options, parentOf(request.traceparent));
    if (span.isRecording()) request.attributes.trace = span.spanContext().traceId;
    const inside = trace.setSpan(ROOT_CONTEXT, span);
    for (const { stage, start, ms } of request.spans)
      tracer.startSpan(stage, { startTime: epoch + start }, inside).end(epoch + start + ms);
    if (request.outcome === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(startTime + request.ms);
  };
  return { record, close: () => provider.shutdown() };
}
