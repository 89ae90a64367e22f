import { isIP } from 'node:net';
import path from 'node:path';
import { formatPacks, parsePacks } from './billing/packs.ts';
import { formatCredits, parseCredits, type QuarterCredits } from './billing/price.ts';
import { UserError } from './errors.ts';

/**
 * Configuration: the only reader of the environment. Every setting is declared once, in `settings`; the
 * type, the check at start-up and the table of `cutout config` follow from it.
 */
interface Setting<T> {
  readonly variable: string;
  /** Text as it would stand in the environment; empty means "not set". */
  readonly fallback: string;
  readonly help: string;
  /** Throws an Error whose message completes "NAME must be …". */
  readonly parse: (text: string) => T;
  readonly secret?: boolean;
  /** As `cutout config` shows a value that does not speak for itself. */
  readonly show?: (value: never) => unknown;
}

const setting = <T>(
  variable: string,
  fallback: string,
  parse: (text: string) => T,
  help: string,
): Setting<T> => ({ variable, fallback, parse, help });

const integer =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Error(`a whole number from ${min} to ${max}`);
    return value;
  };

const auto =
  <T>(parse: (text: string) => T) =>
  (text: string): T | 'auto' => {
    if (text === 'auto') return 'auto';
    try {
      return parse(text);
    } catch (error) {
      throw new Error(`auto or ${error instanceof Error ? error.message : ''}`);
    }
  };

/** Bytes: 4G, 1500M; M and G are 2^20 and 2^30, as for containers. */
const bytes = (text: string): number => {
  const [, number, unit] = /^(\d{1,9})(m|g)i?b?$/i.exec(text) ?? [];
  const value = Number(number) * (unit?.toLowerCase() === 'g' ? 2 ** 30 : 2 ** 20);
  if (!(value > 0)) throw new Error('an amount of memory like 4G or 1500M');
  return value;
};

const oneOf =
  <T extends string>(...words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((candidate) => candidate === text.toLowerCase());
    if (!word) throw new Error(`one of ${words.join(', ')}`);
    return word;
  };

const list =
  <T>(parse: (text: string) => T, what: string) =>
  (text: string): readonly T[] => {
    try {
      return Object.freeze(
        text
          .split(',')
          .map((item) => item.trim())
          .filter((item) => item !== '')
          .map(parse),
      );
    } catch {
      throw new Error(what);
    }
  };

/** A price; what is written is credits, what is counted are quarters. */
const price = (text: string): QuarterCredits => {
  const amount = parseCredits(text);
  if (amount === undefined || amount < 0) throw new Error('credits in steps of 0.25, 0 or more');
  return amount;
};

const folder = (text: string): string => path.resolve(text);
const optional =
  <T>(parse: (text: string) => T) =>
  (text: string): T | undefined =>
    text === '' ? undefined : parse(text);

const apiKey = (text: string): string => {
  if (!/^[\x21-\x7e]{16,200}$/.test(text))
    throw new Error('16 to 200 visible ASCII characters without white space');
  return text;
};

const token = (text: string): string => {
  if (!/^[\x21-\x7e]{4,500}$/.test(text)) throw new Error('visible ASCII characters without white space');
  return text;
};

const webAddress = (text: string): string => {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? '')) throw new Error('an http or https address');
  return text;
};

/** A key in an address would end up in messages about it; there are headers for that. */
const collector = (text: string): string => {
  const url = URL.parse(webAddress(text));
  if (url?.username || url?.password)
    throw new Error('an http or https address without a user name (CUTOUT_OTLP_HEADERS takes keys)');
  return text;
};

const headers = (text: string): Readonly<Record<string, string>> =>
  Object.freeze(
    Object.fromEntries(
      text
        .split(',')
        .filter((pair) => pair.trim() !== '')
        .map((pair) => {
          const [, name, value] = /^\s*([A-Za-z0-9-]+)=([\x20-\x7e]+)$/.exec(pair) ?? [];
          if (!name || !value) throw new Error('headers like Name=value, several with commas');
          return [name, value.trim()];
        }),
    ),
  );

const postgresAddress = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2)
    throw new Error('an address like postgres://user:password@host:5432/database');
  return text;
};

const redisAddress = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^rediss?:$/.test(url.protocol) || !/^(\/\d*)?$/.test(url.pathname) || url.hostname === '')
    throw new Error('an address like redis://user:password@host:6379/0, or rediss:// for TLS');
  return text;
};

/** Scheme, host and port, as browsers write it. */
const origin = (text: string): string => {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || !['', '/'].includes(url.pathname) || url.search !== '')
    throw new Error('an address like https://cutout.example.com, without a path');
  return url.origin;
};

/** A rule of one provider, by its place in CUTOUT_OIDC_ISSUER, from 1; undefined: of the only one. */
interface OfProvider {
  readonly provider: number | undefined;
}

const placed = ({ provider }: OfProvider, text: string) =>
  provider === undefined ? text : `${provider}:${text}`;

/** A value may have commas in it: a new claim begins where a comma is followed by a provider. */
const claims = (text: string): readonly ({ readonly name: string; readonly value: string } & OfProvider)[] =>
  text.split(/,(?=\s*\d+:)/).map((each) => {
    const [, provider, name, value] = /^(?:(\d+):)?([^=\s]+)=(.+)$/.exec(each.trim()) ?? [];
    if (!name || !value)
      throw new Error(
        'a claim and its value, for example groups=cutout-admins; with several providers 1:groups=cutout-admins, 2:…',
      );
    return { provider: provider === undefined ? undefined : Number(provider), name, value };
  });

const operatorEmail = (text: string): { readonly email: string } & OfProvider => {
  const [, provider, email] = /^(?:(\d+):)?([^:\s]+)$/.exec(text.toLowerCase()) ?? [];
  if (!email) throw new Error();
  return { provider: provider === undefined ? undefined : Number(provider), email };
};

const packs = (text: string) => {
  try {
    return parsePacks(text);
  } catch {
    throw new Error('different packs of credits like 50=9.00 EUR, 500=49 EUR');
  }
};

const listenHost = (text: string): string => {
  if (isIP(text) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text))
    throw new Error('an IP address or a host name');
  return text;
};

const networkName = (text: string): string => {
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(text))
    throw new Error('the name of a network (cutout models list)');
  return text;
};

/** Host of an address as `new URL()` writes it, with an optional port. */
const fetchHost = (text: string): string => {
  const [, name = '', port] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(text.toLowerCase()) ?? [];
  if (new URL(`http://${name}`).host !== name) throw new Error();
  if (port !== undefined) integer(1, 65535)(port);
  return text.toLowerCase();
};

const settings = {
  host: setting(
    'CUTOUT_HOST',
    '127.0.0.1',
    listenHost,
    'Address to listen on. 0.0.0.0 or :: accepts connections from other machines.',
  ),
  port: setting('CUTOUT_PORT', '8080', integer(0, 65535), 'Port to listen on; 0 takes a free one.'),
  dataDir: setting(
    'CUTOUT_DATA_DIR',
    './data',
    folder,
    'Folder of the accounts and, unless moved, networks.',
  ),
  databaseUrl: {
    ...setting(
      'CUTOUT_DATABASE_URL',
      '',
      optional(postgresAddress),
      'PostgreSQL database of the accounts, which several nodes may share: postgres://… (default: SQLite in the data folder).',
    ),
    secret: true,
  },
  modelsDir: setting(
    'CUTOUT_MODELS_DIR',
    '',
    optional(folder),
    'Folder of pulled and prepared networks (default: "models" in the data folder).',
  ),
  apiKey: {
    ...setting(
      'CUTOUT_API_KEY',
      '',
      optional(apiKey),
      'Key of the local account, used when the account is made on the first start (default: a random one).',
    ),
    secret: true,
  },
  model: setting('CUTOUT_MODEL', 'isnet', networkName, 'Network to run.'),
  subjectTypes: setting(
    'CUTOUT_SUBJECT_TYPES',
    'on',
    oneOf('on', 'off'),
    'Whether type=auto finds out what the subject is (about 60 MB). off: X-Type is always other for type=auto.',
  ),
  device: setting(
    'CUTOUT_DEVICE',
    'cpu',
    oneOf('cpu', 'cuda', 'tensorrt'),
    'What runs the network: cpu, cuda or tensorrt. One that cannot be used is an error at start.',
  ),
  precision: setting(
    'CUTOUT_PRECISION',
    'auto',
    oneOf('auto', 'fp32', 'int8'),
    'Numbers the network computes with on a CPU: int8 is faster where the processor has 8-bit dot products, which auto finds out (cutout doctor).',
  ),
  deviceId: setting('CUTOUT_DEVICE_ID', '0', integer(0, 63), 'Number of the GPU.'),
  profile: setting(
    'CUTOUT_PROFILE',
    'balanced',
    oneOf('fast', 'balanced', 'best'),
    'What is traded for time: fast, balanced or best.',
  ),
  runtime: setting(
    'CUTOUT_RUNTIME',
    '',
    optional(folder),
    'File of the ONNX Runtime library (default: the one in the npm package onnxruntime-node).',
  ),
  workers: setting(
    'CUTOUT_WORKERS',
    'auto',
    auto(integer(1, 64)),
    'Images whose network runs at the same time.',
  ),
  threads: setting('CUTOUT_THREADS', 'auto', auto(integer(1, 256)), 'Threads of one network run.'),
  queueSeconds: setting(
    'CUTOUT_QUEUE_SECONDS',
    '30',
    integer(0, 3600),
    'Seconds that a request may have to wait for its turn; one that would wait longer is answered with 503 at once. 0 lets all wait.',
  ),
  memoryLimit: {
    ...setting(
      'CUTOUT_MEMORY_LIMIT',
      'auto',
      auto(bytes),
      'Memory that the process may take, for example 4G or 1500M; requests beyond are answered with 503. auto: the limit of its control group, else three quarters of the machine.',
    ),
    show: (value: number | 'auto') => (value === 'auto' ? value : `${Math.round(value / 2 ** 20)}M`),
  },
  accountConcurrency: setting(
    'CUTOUT_ACCOUNT_CONCURRENCY',
    '0',
    integer(0, 10_000),
    'Requests of one account that may be worked on or wait; one more is answered with 429. 0 is no limit.',
  ),
  rateLimit: setting(
    'CUTOUT_RATE_LIMIT',
    '500',
    integer(0, 1_000_000),
    'Megapixels that one account may send in a minute. 0 is no limit.',
  ),
  resultTtlSeconds: setting(
    'CUTOUT_KEEP_SECONDS',
    '600',
    integer(0, 86_400),
    'How long a result is kept, in memory or Redis, for a request that is repeated. 0 keeps nothing.',
  ),
  cacheMegabytes: setting(
    'CUTOUT_KEEP_MEGABYTES',
    '256',
    integer(1, 1_000_000),
    'Memory of all kept results together; the oldest goes first.',
  ),
  redisUrl: {
    ...setting(
      'CUTOUT_REDIS_URL',
      '',
      optional(redisAddress),
      'Redis 7 that several nodes share kept results, work under way, limits and sessions in: redis://user:password@host:6379/0. None: all of it stays in memory.',
    ),
    secret: true,
  },
  pricePreview: {
    ...setting('CUTOUT_PRICE_PREVIEW', '0.25', price, 'Credits for a preview when no free one is left.'),
    show: formatCredits,
  },
  priceFull: {
    ...setting(
      'CUTOUT_PRICE_FULL',
      '1',
      price,
      'Credits for any larger result. 0 with 0 for previews: no billing.',
    ),
    show: formatCredits,
  },
  freePreviewsMonth: setting(
    'CUTOUT_FREE_PREVIEWS_MONTH',
    '50',
    integer(0, 1_000_000),
    'Free previews of an account in a calendar month (UTC). 0 gives none.',
  ),
  freePreviewsDay: setting(
    'CUTOUT_FREE_PREVIEWS_DAY',
    '10',
    integer(0, 1_000_000),
    'How many of them on one day (UTC). 0 is no limit of the day.',
  ),
  idleRelease: setting(
    'CUTOUT_IDLE_RELEASE',
    '300',
    integer(0, 86_400),
    'Seconds without a request after which the memory of a network run (about 0.6 GB) goes back to the system; the next request takes about half a second longer. 0 keeps it.',
  ),
  idleUnload: setting(
    'CUTOUT_IDLE_UNLOAD',
    '0',
    integer(0, 2_000_000),
    'Seconds without a request after which the network itself is dropped and its memory goes back to the system; the next request waits until it is loaded again. 0 keeps it.',
  ),
  timeout: setting(
    'CUTOUT_TIMEOUT',
    '120',
    integer(1, 3600),
    'Seconds a request may take, upload included; then it is answered with 504.',
  ),
  drainSeconds: setting(
    'CUTOUT_DRAIN_SECONDS',
    '0',
    integer(0, 3600),
    'Seconds after SIGTERM in which everything is still answered while /health/ready says no: the time a load balancer needs to notice.',
  ),
  stopTimeout: setting(
    'CUTOUT_STOP_TIMEOUT',
    '30',
    integer(0, 3600),
    'Seconds that running requests may take to finish after SIGTERM.',
  ),
  adminToken: {
    ...setting(
      'CUTOUT_ADMIN_TOKEN',
      '',
      optional(apiKey),
      'Token of operators for the API under /admin/v1, which is there only with it.',
    ),
    secret: true,
  },
  packs: {
    ...setting(
      'CUTOUT_PACKS',
      '',
      optional(packs),
      'Packs of credits to sell through Stripe, e.g. 50=9.00 EUR, 500=49 EUR. Nothing is sold without.',
    ),
    show: formatPacks,
  },
  stripeSecretKey: {
    ...setting('CUTOUT_STRIPE_SECRET_KEY', '', optional(token), "Stripe's secret key (sk_… or rk_…)."),
    secret: true,
  },
  stripeWebhookSecret: {
    ...setting(
      'CUTOUT_STRIPE_WEBHOOK_SECRET',
      '',
      optional(token),
      'Secret of the webhook that points at /billing/stripe (whsec_…).',
    ),
    secret: true,
  },
  stripeSuccessUrl: setting(
    'CUTOUT_STRIPE_SUCCESS_URL',
    '',
    optional(webAddress),
    'Page that a buyer comes back to after paying.',
  ),
  stripeCancelUrl: setting(
    'CUTOUT_STRIPE_CANCEL_URL',
    '',
    optional(webAddress),
    'Page that a buyer comes back to without having paid.',
  ),
  publicUrl: setting(
    'CUTOUT_PUBLIC_URL',
    '',
    optional(origin),
    'How people reach the service, for example https://cutout.example.com. Needed for signing in; https makes cookies Secure.',
  ),
  proxies: setting(
    'CUTOUT_PROXIES',
    '0',
    integer(0, 10),
    'Proxies in front of the service whose X-Forwarded-For is believed.',
  ),
  failedAttempts: setting(
    'CUTOUT_FAILED_ATTEMPTS',
    '30',
    integer(0, 1_000_000),
    'Unknown keys, or failed sign-ins, from one address in a minute; more have to wait. 0 is no limit.',
  ),
  oidcIssuer: setting(
    'CUTOUT_OIDC_ISSUER',
    '',
    optional(list(webAddress, 'a comma-separated list of http or https addresses')),
    'OpenID Connect providers that people sign in with, several with commas. None: the console opens through a link that `cutout serve` and `cutout console` print.',
  ),
  oidcClientId: setting(
    'CUTOUT_OIDC_CLIENT_ID',
    '',
    optional(list(token, 'a comma-separated list of client ids')),
    'Id of this service at each of them, in the same order.',
  ),
  oidcClientSecret: {
    ...setting(
      'CUTOUT_OIDC_CLIENT_SECRET',
      '',
      optional(list(token, 'a comma-separated list of secrets')),
      'Secret at each of them; none for public clients.',
    ),
    secret: true,
  },
  oidcName: setting(
    'CUTOUT_OIDC_NAME',
    '',
    optional(list((text) => text, 'a comma-separated list of names')),
    'Name of each on its button (default: its host).',
  ),
  oidcOperatorClaim: {
    ...setting(
      'CUTOUT_OIDC_OPERATOR_CLAIM',
      '',
      optional(claims),
      'Claim that makes somebody an operator, for example groups=cutout-admins; with several providers 1:groups=cutout-admins, 2:roles=operator.',
    ),
    show: (all: ReturnType<typeof claims>) =>
      all.map((each) => placed(each, `${each.name}=${each.value}`)).join(', '),
  },
  oidcOperators: {
    ...setting(
      'CUTOUT_OIDC_OPERATORS',
      '',
      list(
        operatorEmail,
        'a comma-separated list of e-mail addresses, with several providers like 1:ann@example.com',
      ),
      'Verified e-mail addresses of operators; with several providers 1:ann@example.com, where 1 is the first of CUTOUT_OIDC_ISSUER.',
    ),
    show: (all: readonly ReturnType<typeof operatorEmail>[]) =>
      all.map((each) => placed(each, each.email)).join(', '),
  },
  signUpCredits: {
    ...setting('CUTOUT_SIGN_UP_CREDITS', '0', price, 'Credits that an account gets at its first sign-in.'),
    show: formatCredits,
  },
  sessionIdle: setting(
    'CUTOUT_SESSION_IDLE',
    '7200',
    integer(60, 31_536_000),
    'Seconds without a request after which somebody is signed out.',
  ),
  sessionMax: setting(
    'CUTOUT_SESSION_MAX',
    '43200',
    integer(60, 31_536_000),
    'Seconds after which somebody has to sign in again in any case.',
  ),
  improvePerDay: setting(
    'CUTOUT_IMPROVE_PER_DAY',
    '100',
    integer(0, 1_000_000),
    'Images that an account may hand in through /v1.0/improve on one day (UTC). 0 is no limit.',
  ),
  improveDir: setting(
    'CUTOUT_IMPROVE_DIR',
    '',
    optional(folder),
    'Folder that keeps them (default: "improve" in the data folder).',
  ),
  s3Endpoint: setting(
    'CUTOUT_S3_ENDPOINT',
    '',
    optional(webAddress),
    'Bucket that keeps them instead of the folder: https://s3.example.com/my-bucket.',
  ),
  s3Region: setting('CUTOUT_S3_REGION', 'us-east-1', token, 'Region of that bucket.'),
  s3AccessKeyId: setting('CUTOUT_S3_ACCESS_KEY_ID', '', optional(token), 'Name of the key to that bucket.'),
  s3SecretAccessKey: {
    ...setting('CUTOUT_S3_SECRET_ACCESS_KEY', '', optional(token), 'The key to that bucket.'),
    secret: true,
  },
  inputFormats: setting(
    'CUTOUT_INPUT_FORMATS',
    '',
    list(oneOf('avif', 'tiff', 'gif'), 'a comma-separated list of avif, tiff, gif'),
    'Input types to accept beside jpg, png and webp.',
  ),
  fetch: setting(
    'CUTOUT_FETCH',
    'public',
    oneOf('off', 'listed', 'public'),
    'From where image_url and bg_image_url are fetched: off, nowhere; listed, the hosts of CUTOUT_FETCH_ALLOW alone; public, those and every public host.',
  ),
  fetchAllow: setting(
    'CUTOUT_FETCH_ALLOW',
    '',
    list(fetchHost, 'a comma-separated list of host names or addresses, each with an optional :port'),
    'Hosts that image_url may name although their address is not public, for example minio.internal:9000. Without a port: those of CUTOUT_FETCH_PORTS.',
  ),
  fetchPorts: setting(
    'CUTOUT_FETCH_PORTS',
    '80,443',
    list(integer(1, 65535), 'a comma-separated list of ports from 1 to 65535'),
    'Ports that are fetched from, beside those that CUTOUT_FETCH_ALLOW lists with their hosts.',
  ),
  fetchConcurrency: setting(
    'CUTOUT_FETCH_CONCURRENCY',
    '64',
    integer(0, 10_000),
    'Images that this server downloads at a time; one more is answered with 503. 0 is no limit.',
  ),
  fetchAccountConcurrency: setting(
    'CUTOUT_FETCH_ACCOUNT_CONCURRENCY',
    '16',
    integer(0, 10_000),
    'How many of them may be of one account; one more is answered with 429. 0 is no limit.',
  ),
  fetchFailures: setting(
    'CUTOUT_FETCH_FAILURES',
    '60',
    integer(0, 1_000_000),
    'Downloads of one account in a minute that may come to nothing; more have to wait. 0 is no limit.',
  ),
  metricsPort: setting(
    'CUTOUT_METRICS_PORT',
    '',
    optional(integer(0, 65535)),
    'Port of its own for GET /metrics, for Prometheus; 0 takes a free one. None without.',
  ),
  metricsHost: setting(
    'CUTOUT_METRICS_HOST',
    '127.0.0.1',
    listenHost,
    'Address on which that port listens. 0.0.0.0 or :: lets other machines read them.',
  ),
  metricsToken: {
    ...setting(
      'CUTOUT_METRICS_TOKEN',
      '',
      optional(apiKey),
      'Token for GET /metrics. With it they are on CUTOUT_PORT too; both ports then want Authorization: Bearer <token>.',
    ),
    secret: true,
  },
  otlpUrl: setting(
    'CUTOUT_OTLP_URL',
    '',
    optional(collector),
    'Collector of OpenTelemetry (OTLP over HTTP) that traces are sent to, for example http://localhost:4318. None without.',
  ),
  otlpHeaders: {
    ...setting(
      'CUTOUT_OTLP_HEADERS',
      '',
      headers,
      'Headers for it, for example Authorization=Bearer abc, several with commas.',
    ),
    secret: true,
  },
  logLevel: setting(
    'CUTOUT_LOG_LEVEL',
    'info',
    oneOf('error', 'warn', 'info', 'debug', 'silent'),
    'Least important line that is written to the log.',
  ),
} as const satisfies Record<string, Setting<unknown>>;

type Settings = typeof settings;
export type SettingName = keyof Settings;
type Values = { readonly [Name in SettingName]: ReturnType<Settings[Name]['parse']> };

export interface Config extends Omit<Values, 'modelsDir' | 'improveDir'> {
  readonly modelsDir: string;
  readonly improveDir: string;
  readonly sources: Readonly<Record<SettingName, 'default' | 'environment'>>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reserved for the test suite, no settings. */
const testPrefix = 'CUTOUT_TEST_';

function refuseUnknown(env: Environment): void {
  const known = new Set<string>(Object.values(settings).map(({ variable }) => variable));
  for (const name of Object.keys(env)) {
    if (!name.startsWith('CUTOUT_') || name.startsWith(testPrefix) || known.has(name)) continue;
    throw new UserError(`${name} is not a setting of Cutout. \`cutout config\` lists all of them.`);
  }
}

function read<T>({ variable, fallback, parse, secret }: Setting<T>, env: Environment): T {
  const given = env[variable]?.trim() ?? '';
  try {
    return parse(given === '' ? fallback : given);
  } catch (error) {
    const expected = error instanceof Error ? error.message : 'something else';
    throw new UserError(`${variable} must be ${expected}${secret ? '' : `, not "${given}"`}.`);
  }
}

/** Settings that mean something only together. */
const together: readonly (readonly SettingName[])[] = [
  ['packs', 'stripeSecretKey', 'stripeWebhookSecret', 'stripeSuccessUrl', 'stripeCancelUrl'],
  ['oidcIssuer', 'oidcClientId'],
  ['s3Endpoint', 's3AccessKeyId', 's3SecretAccessKey'],
];

function refuseHalf(values: Values): void {
  for (const group of together) {
    const variables = (given: boolean) =>
      group.filter((name) => (values[name] !== undefined) === given).map((name) => settings[name].variable);
    const [given, missing] = [variables(true), variables(false)];
    if (given.length > 0 && missing.length > 0)
      throw new UserError(`${given.join(', ')} also needs ${missing.join(', ')}, which is not set.`);
  }
}

/** One entry of each list for each provider; people must be able to come back. */
function refuseUnequal({ oidcIssuer, oidcClientId, oidcClientSecret, oidcName, publicUrl }: Values): void {
  const lists = { oidcClientId, oidcClientSecret, oidcName };
  for (const [name, values] of Object.entries(lists) as [
    keyof typeof lists,
    readonly string[] | undefined,
  ][]) {
    const { variable } = settings[name];
    if (values && values.length !== oidcIssuer?.length)
      throw new UserError(`${variable} must have as many entries as CUTOUT_OIDC_ISSUER.`);
  }
  if (oidcIssuer && !publicUrl)
    throw new UserError('CUTOUT_OIDC_ISSUER also needs CUTOUT_PUBLIC_URL, which is not set.');
}

/** What one provider says of somebody counts for this provider alone: with several, each rule names its own. */
function refuseUnplaced({ oidcIssuer, oidcOperators, oidcOperatorClaim }: Values): void {
  const count = oidcIssuer?.length ?? 0;
  if (count === 0) return;
  const rules = [
    ...oidcOperators.map((each) => ({ ...each, name: 'oidcOperators', text: each.email }) as const),
    ...(oidcOperatorClaim ?? []).map(
      (each) => ({ ...each, name: 'oidcOperatorClaim', text: `${each.name}=${each.value}` }) as const,
    ),
  ];
  for (const { name, provider, text } of rules) {
    const { variable } = settings[name];
    if (provider === undefined && count > 1)
      throw new UserError(
        `${variable} must say of which of the ${count} providers of CUTOUT_OIDC_ISSUER ${text} is: 1:${text} of the first.`,
      );
    if (provider !== undefined && (provider < 1 || provider > count))
      throw new UserError(`${variable} names provider ${provider}, CUTOUT_OIDC_ISSUER has ${count}.`);
  }
  const claimed = (oidcOperatorClaim ?? []).map(({ provider = 1 }) => provider);
  if (new Set(claimed).size < claimed.length)
    throw new UserError('CUTOUT_OIDC_OPERATOR_CLAIM may have one claim for each provider.');
}

/**
 * The configuration, frozen. A variable that is set but empty counts as not set. Throws UserError for an
 * unknown CUTOUT_* name, for a bad value and for half of what goes together, naming it.
 */
export function loadConfig(env: Environment = process.env): Config {
  refuseUnknown(env);
  const names = Object.keys(settings) as SettingName[];
  const values = Object.fromEntries(
    names.map((name) => [name, read<unknown>(settings[name], env)]),
  ) as unknown as Values;
  refuseHalf(values);
  refuseUnequal(values);
  refuseUnplaced(values);
  if (values.fetch === 'listed' && values.fetchAllow.length === 0)
    throw new UserError('CUTOUT_FETCH=listed also needs CUTOUT_FETCH_ALLOW, which is not set.');
  const sources = Object.fromEntries(
    names.map((name) => [
      name,
      (env[settings[name].variable]?.trim() ?? '') === '' ? 'default' : 'environment',
    ]),
  ) as Record<SettingName, 'default' | 'environment'>;
  return Object.freeze({
    ...values,
    modelsDir: values.modelsDir ?? path.join(values.dataDir, 'models'),
    improveDir: values.improveDir ?? path.join(values.dataDir, 'improve'),
    sources: Object.freeze(sources),
  });
}

export interface ConfigLine {
  readonly variable: string;
  readonly value: unknown;
  readonly source: 'default' | 'environment';
  readonly help: string;
}

/** What `cutout config` shows: one line a setting, secrets masked. */
export function describeConfig(config: Config): ConfigLine[] {
  return (Object.keys(settings) as SettingName[]).map((name) => {
    const { variable, help, secret, show }: Setting<unknown> = settings[name];
    const value = config[name];
    return {
      variable,
      value: value === undefined ? null : secret ? '(set)' : show ? show(value as never) : value,
      source: config.sources[name],
      help,
    };
  });
}

/**
 * What bounds the memory that the C++ heap keeps, as the process was started (scripts/setup/process.js): a library, or
 * glibc with few arenas; undefined: nothing does.
 */
export function describeAllocator(env: Environment = process.env): string | undefined {
  const library = /[^\s:]*(jemalloc|tcmalloc|mimalloc)[^\s:]*/.exec(env['LD_PRELOAD'] ?? '')?.[1];
  const arenas = env['MALLOC_ARENA_MAX'];
  return library ?? (arenas && `glibc, ${arenas} arenas`);
}
