import { apiKey, integer, list, listenHost, oneOf, webAddress } from './parsers.ts';
import { optional, type Settings, setting, type Values } from './types.ts';

/** A key in the address would appear in messages about it, so it is refused; headers carry keys. */
const collector = (text: string): string => {
  const url = URL.parse(webAddress(text));
  if (url?.username || url?.password)
    throw new Error('an http or https address without a user name (CUTOUT_OTLP_HEADERS takes keys)');
  return text;
};

const header = (text: string): readonly [string, string] => {
  const [, name, value] = /^([A-Za-z0-9-]+)=([\x20-\x7e]+)$/.exec(text) ?? [];
  if (!name || !value) throw new Error();
  return [name, value];
};
const headerList = list(header, 'headers like Name=value, several with commas');
const headers = (text: string) => Object.freeze(Object.fromEntries(headerList(text)));

export const observeSettings = {
  metricsPort: optional('CUTOUT_METRICS_PORT', integer(0, 65535)).help(
    'Separate port for GET /metrics, for Prometheus; 0 takes a free one. Not set: no such port.',
  ),
  metricsHost: setting('CUTOUT_METRICS_HOST', '127.0.0.1', listenHost).help(
    'Address on which CUTOUT_METRICS_PORT listens. 0.0.0.0 or :: accepts connections from other machines.',
  ),
  metricsToken: optional('CUTOUT_METRICS_TOKEN', apiKey, { secret: true }).help(
    'Token for GET /metrics. If set, metrics are also on CUTOUT_PORT, and both ports require Authorization: Bearer <token>.',
  ),
  otlpUrl: optional('CUTOUT_OTLP_URL', collector).help(
    'OpenTelemetry collector (OTLP over HTTP) that traces are sent to, for example http://localhost:4318. Not set: no traces.',
  ),
  otlpHeaders: setting('CUTOUT_OTLP_HEADERS', '', headers, { secret: true }).help(
    'Headers for the OpenTelemetry collector, for example Authorization=Bearer abc, comma-separated.',
  ),
  logLevel: setting('CUTOUT_LOG_LEVEL', 'info', oneOf('error', 'warn', 'info', 'debug', 'silent')).help(
    'Lowest level of the lines that are written to the log.',
  ),
} as const satisfies Settings;

export type ObserveConfig = Values<typeof observeSettings>;
