import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { describeConfig, InvalidSettings, loadConfig } from '../../src/config/readConfig.ts';
import { UserError } from '../../src/errors.ts';

test('without a CUTOUT_ variable every value is a default', (t) => {
  const config = loadConfig({ PATH: '/bin' });
  t.is(config.http.port, 8080);
  t.is(config.http.host, '127.0.0.1');
  t.is(config.store.dataDir, path.resolve('data'));
  t.is(config.engine.modelsDir, path.resolve('data', 'models'));
  t.is(config.engine.workers, 'auto');
  t.is(config.accounts.apiKey, undefined);
  t.deepEqual(config.cutout.inputFormats, ['avif', 'heic']);
  t.deepEqual(new Set(Object.values(config.sources)), new Set(['default']));
});

test('a set variable is parsed, trimmed and marked', (t) => {
  const config = loadConfig({
    CUTOUT_PORT: ' 9000 ',
    CUTOUT_DATA_DIR: '/srv/cutout',
    CUTOUT_DEVICE: 'CUDA',
    CUTOUT_THREADS: '3',
    CUTOUT_INPUT_FORMATS: 'avif, gif',
    CUTOUT_FETCH_ALLOW: 'minio.internal:9000,[fd00::1]',
  });
  t.is(config.http.port, 9000);
  t.is(config.engine.modelsDir, '/srv/cutout/models');
  t.is(config.engine.device, 'cuda');
  t.is(config.engine.threads, 3);
  t.deepEqual(config.cutout.inputFormats, ['avif', 'gif']);
  t.deepEqual(config.fetch.allow, ['minio.internal:9000', '[fd00::1]']);
  t.is(config.sources['CUTOUT_PORT'], 'environment');
  t.is(config.sources['CUTOUT_HOST'], 'default');
});

test('the device auto is to be chosen, and is shown as it was set', (t) => {
  const read = (device: string) => {
    const config = loadConfig({ CUTOUT_DATA_DIR: '/srv', CUTOUT_DEVICE: device });
    const shown = describeConfig(config).find(({ variable }) => variable === 'CUTOUT_DEVICE');
    return { auto: config.engine.auto, shown: shown?.value, runtimesDir: config.engine.runtimesDir };
  };
  const runtimesDir = '/srv/runtimes';
  t.deepEqual(read('webgpu'), { auto: false, shown: 'webgpu', runtimesDir });
  t.deepEqual(read('auto'), { auto: true, shown: 'auto', runtimesDir });
});

test('GPUs are named by one number, several, or all', (t) => {
  const read = (value: string) => loadConfig({ CUTOUT_DEVICE_ID: value }).engine.deviceIds;
  t.deepEqual(read(''), [0]);
  t.deepEqual(read('3'), [3]);
  t.deepEqual(read('2, 0'), [2, 0]);
  t.is(read('all'), 'all');
});

test('a variable that is set but empty counts as not set', (t) => {
  const config = loadConfig({ CUTOUT_PORT: '', CUTOUT_API_KEY: ' ' });
  t.is(config.http.port, 8080);
  t.is(config.sources['CUTOUT_PORT'], 'default');
  t.is(config.accounts.apiKey, undefined);
});

test('an unknown CUTOUT_ name is an error that names it', (t) => {
  const error = t.throws(() => loadConfig({ CUTOUT_PROT: '1' }), { instanceOf: UserError });
  t.regex(error.message, /CUTOUT_PROT/);
});

/** One unknown name, two wrong values, and one setting whose others are missing. */
const invalid = {
  CUTOUT_PROT: '1',
  CUTOUT_PORT: '80a',
  CUTOUT_PRICE_FULL: '0.3',
  CUTOUT_S3_ENDPOINT: 'https://s3.example/b',
};

test('all errors are reported at once, one line each', (t) => {
  const env = {
    ...invalid,
    CUTOUT_PACKS: '50=9 EUR',
    CUTOUT_OIDC_ISSUER: 'https://a.test',
    CUTOUT_FETCH: 'listed',
  };
  const error = t.throws(() => loadConfig(env), { instanceOf: UserError });
  const said = error.message.split('\n').map((line) => line.replace(/ .*/, ''));
  t.deepEqual(said, [
    'CUTOUT_PROT',
    'CUTOUT_PORT',
    'CUTOUT_PRICE_FULL',
    'CUTOUT_OIDC_ISSUER',
    'CUTOUT_S3_ENDPOINT',
    'CUTOUT_FETCH=listed',
  ]);
});

test('invalid settings are listed like the others, and marked', (t) => {
  const env = {
    ...invalid,
    CUTOUT_HOST: '0.0.0.0',
    CUTOUT_API_KEY: 'short secret',
    CUTOUT_DATA_DIR: '/srv/cutout',
  };
  const { lines = [] } = t.throws(() => loadConfig(env), { instanceOf: InvalidSettings }) ?? {};
  const all = describeConfig(loadConfig({}));
  t.deepEqual(
    lines.map(({ variable, help }) => [variable, help]),
    all.map(({ variable, help }) => [variable, help]),
  );
  const line = (name: string) => lines.find(({ variable }) => variable === name);
  t.like(line('CUTOUT_PORT'), { value: '80a', source: 'environment', wrong: true });
  t.like(line('CUTOUT_PRICE_FULL'), { value: '0.3', wrong: true });
  t.like(line('CUTOUT_API_KEY'), { value: '(set)', wrong: true });
  t.like(line('CUTOUT_S3_ENDPOINT'), { source: 'environment', wrong: true });
  t.like(line('CUTOUT_S3_SECRET_ACCESS_KEY'), { value: null, source: 'default', wrong: true });
  for (const [name, value] of [
    ['CUTOUT_HOST', '0.0.0.0'],
    ['CUTOUT_MODELS_DIR', '/srv/cutout/models'],
    ['CUTOUT_PRICE_PREVIEW', '0.25'],
  ]) {
    t.like(line(name ?? ''), { value });
    t.is(line(name ?? '')?.wrong, undefined);
  }
  t.false(JSON.stringify(lines).includes('short secret'));
});

test('a second network that is the first one is an error that names both settings', (t) => {
  const same = { CUTOUT_MODEL: 'silueta', CUTOUT_SECOND_MODEL: 'silueta' };
  t.throws(() => loadConfig(same), {
    instanceOf: UserError,
    message: /^CUTOUT_SECOND_MODEL is silueta, which CUTOUT_MODEL is already\./,
  });
  t.throws(() => loadConfig({ CUTOUT_SECOND_MODEL: 'isnet' }), { instanceOf: UserError });
  t.is(loadConfig({ ...same, CUTOUT_MODEL: 'u2netp' }).engine.secondModel, 'silueta');
});

test('names reserved for the test suite are neither settings nor errors', (t) => {
  t.notThrows(() => loadConfig({ CUTOUT_TEST_MODELS: '/x' }));
});

for (const [name, value] of [
  ['CUTOUT_PORT', '70000'],
  ['CUTOUT_PORT', '80a'],
  ['CUTOUT_HOST', 'not a host'],
  ['CUTOUT_WORKERS', '0'],
  ['CUTOUT_THREADS', 'many'],
  ['CUTOUT_DEVICE', 'npu'],
  ['CUTOUT_DEVICE_ID', '0,0'],
  ['CUTOUT_DEVICE_MEMORY', '20'],
  ['CUTOUT_DEVICE_ID', '0;1'],
  ['CUTOUT_DEVICE_ID', ','],
  ['CUTOUT_DEVICE_ID', '64'],
  ['CUTOUT_DEVICE_ID', '0,,'],
  ['CUTOUT_DEVICE_ID', '0,'],
  ['CUTOUT_DEVICE_ID', ',0'],
  ['CUTOUT_DEVICE_ID', '0, ,1'],
  ['CUTOUT_DEVICE_ID', '0 1'],
  ['CUTOUT_MODEL', '../escape'],
  ['CUTOUT_INPUT_FORMATS', 'avif,svg'],
  ['CUTOUT_INPUT_FORMATS', 'none,gif'],
  ['CUTOUT_KEEP_ALIVE', '4'],
  ['CUTOUT_FETCH', 'private'],
  ['CUTOUT_FETCH_ALLOW', 'http://host/'],
  ['CUTOUT_FETCH_ALLOW', 'host:0'],
  ['CUTOUT_FETCH_ALLOW', 'a@host'],
  ['CUTOUT_FETCH_PORTS', '80,http'],
  ['CUTOUT_FETCH_PORTS', '0'],
  ['CUTOUT_FETCH_CONCURRENCY', '-1'],
  ['CUTOUT_TIMEOUT', '-1'],
  ['CUTOUT_LOG_LEVEL', 'loud'],
  ['CUTOUT_PRICE_FULL', '0.3'],
  ['CUTOUT_PRICE_PREVIEW', '-1'],
  ['CUTOUT_RATE_LIMIT', 'none'],
  ['CUTOUT_KEEP_MEGABYTES', '0'],
  ['CUTOUT_PACKS', '50=9.00'],
  ['CUTOUT_PACKS', '50=9 EUR, 50=8 EUR'],
  ['CUTOUT_S3_ENDPOINT', 'ftp://bucket'],
] as const) {
  test(`${name}=${value} is an error that names variable and value`, (t) => {
    const error = t.throws(() => loadConfig({ [name]: value }), { instanceOf: UserError });
    t.true(error.message.startsWith(`${name} must be `), error.message);
    t.true(error.message.includes(`"${value}"`), error.message);
  });
}

test('a bad key is refused without being repeated', (t) => {
  const error = t.throws(() => loadConfig({ CUTOUT_API_KEY: 'short secret' }), { instanceOf: UserError });
  t.regex(error.message, /^CUTOUT_API_KEY must be /);
  t.false(error.message.includes('secret'));
});

test('HEIC and AVIF are read by default, none of the others where they are switched off', (t) => {
  t.deepEqual(loadConfig({}).cutout.inputFormats, ['avif', 'heic']);
  t.deepEqual(loadConfig({ CUTOUT_INPUT_FORMATS: 'none' }).cutout.inputFormats, []);
  t.deepEqual(loadConfig({ CUTOUT_INPUT_FORMATS: 'tiff' }).cutout.inputFormats, ['tiff']);
});

test.serial(
  'networks are in one place of the user, except beside a checkout, in a data folder that is set or has some',
  (t) => {
    const here = process.cwd();
    const folder = mkdtempSync(path.join(tmpdir(), 'cutout-config-'));
    t.teardown(() => {
      process.chdir(here);
      rmSync(folder, { recursive: true });
    });
    t.is(loadConfig({ HOME: '/home/ann' }).engine.modelsDir, path.resolve('data', 'models'), 'a checkout');
    process.chdir(folder);
    const at = (env: Record<string, string>) => loadConfig(env).engine.modelsDir;
    t.is(at({ HOME: '/home/ann' }), '/home/ann/.local/share/cutout/models');
    t.is(at({ HOME: '/home/ann', XDG_DATA_HOME: '/xdg' }), '/xdg/cutout/models');
    t.is(at({ XDG_DATA_HOME: 'relative' }), path.join(process.cwd(), 'data', 'models'));
    t.is(at({ HOME: '/home/ann', CUTOUT_DATA_DIR: '/data' }), '/data/models');
    t.is(at({ HOME: '/home/ann', CUTOUT_MODELS_DIR: '/models' }), '/models');
    mkdirSync(path.join('data', 'models'), { recursive: true });
    t.is(at({ HOME: '/home/ann' }), path.join(process.cwd(), 'data', 'models'));
  },
);

test('the configuration cannot be changed', (t) => {
  const config = loadConfig({ CUTOUT_INPUT_FORMATS: 'gif' });
  t.throws(() => Object.assign(config, { http: {} }));
  t.throws(() => Object.assign(config.http, { port: 1 }));
  t.throws(() => (config.cutout.inputFormats as string[]).push('svg'));
});

test('the description lists every setting with value and source, and masks the key', (t) => {
  const lines = describeConfig(loadConfig({ CUTOUT_API_KEY: 'a-key-of-enough-length' }));
  t.false(JSON.stringify(lines).includes('a-key-of-enough-length'));
  const key = lines.find(({ variable }) => variable === 'CUTOUT_API_KEY');
  t.like(key, { value: '(set)', source: 'environment' });
  t.like(
    lines.find(({ variable }) => variable === 'CUTOUT_PORT'),
    { value: 8080, source: 'default' },
  );
  t.true(lines.every(({ help }) => help.endsWith('.')));
});

test('limits and prices are those of the contract, and 0 turns each of them off', (t) => {
  t.like(loadConfig({}), {
    limits: { rate: 500, accountConcurrency: 0 },
    cutout: { resultTtlSeconds: 600 },
    billing: { freePreviewsMonth: 50, freePreviewsDay: 10 },
    improve: { perDay: 100 },
  });
  t.is(loadConfig({}).billing.pricePreview as number, 1);
  t.is(loadConfig({}).billing.priceFull as number, 4);
  const names = [
    'CUTOUT_RATE_LIMIT',
    'CUTOUT_ACCOUNT_CONCURRENCY',
    'CUTOUT_QUEUE_SECONDS',
    'CUTOUT_KEEP_SECONDS',
    'CUTOUT_IDLE_UNLOAD',
    'CUTOUT_FREE_PREVIEWS_MONTH',
    'CUTOUT_FREE_PREVIEWS_DAY',
    'CUTOUT_PRICE_PREVIEW',
    'CUTOUT_PRICE_FULL',
    'CUTOUT_IMPROVE_PER_DAY',
    'CUTOUT_FETCH_CONCURRENCY',
    'CUTOUT_FETCH_ACCOUNT_CONCURRENCY',
    'CUTOUT_FETCH_FAILURES',
  ];
  t.notThrows(() => loadConfig(Object.fromEntries(names.map((name) => [name, '0']))));
});

test("images are fetched from public hosts on the web's ports, a few at a time", (t) => {
  t.like(loadConfig({}).fetch, {
    mode: 'public',
    ports: [80, 443],
    concurrency: 64,
    accountConcurrency: 16,
    failures: 60,
  });
  // The default port of a scheme is treated like any other.
  t.deepEqual(loadConfig({ CUTOUT_FETCH_ALLOW: 'A.example:80' }).fetch.allow, ['a.example:80']);
  t.throws(() => loadConfig({ CUTOUT_FETCH: 'listed' }), { message: /requires CUTOUT_FETCH_ALLOW/ });
  t.is(loadConfig({ CUTOUT_FETCH: 'listed', CUTOUT_FETCH_ALLOW: 'a.example' }).fetch.mode, 'listed');
});

const stripe = {
  CUTOUT_PACKS: '50=9.00 EUR, 500=4900 JPY',
  CUTOUT_STRIPE_SECRET_KEY: 'sk_test_of_this_test',
  CUTOUT_STRIPE_WEBHOOK_SECRET: 'whsec_of_this_test',
  CUTOUT_PUBLIC_URL: 'https://shop.example',
};

test('an incomplete group of settings is an error that names its members', (t) => {
  t.notThrows(() => loadConfig(stripe));
  const { CUTOUT_STRIPE_WEBHOOK_SECRET: _, ...half } = stripe;
  const error = t.throws(() => loadConfig(half), { instanceOf: UserError });
  t.regex(error.message, /CUTOUT_PACKS.* require CUTOUT_STRIPE_WEBHOOK_SECRET, which is not set/);
  const { CUTOUT_PUBLIC_URL: __, ...hidden } = stripe;
  t.throws(() => loadConfig(hidden), { message: /^CUTOUT_PACKS requires CUTOUT_PUBLIC_URL/ });
  t.throws(() => loadConfig({ CUTOUT_S3_ENDPOINT: 'https://s3.example/b' }), { instanceOf: UserError });
});

test('prices and packs are shown in the form they are written in; every secret is masked', (t) => {
  const env = {
    ...stripe,
    CUTOUT_REDIS_URL: 'redis://:secret-of-redis@127.0.0.1',
    CUTOUT_ADMIN_TOKEN: 'operator-token-of-this-test',
    CUTOUT_S3_ENDPOINT: 'https://s3.example/b',
    CUTOUT_S3_ACCESS_KEY_ID: 'access',
    CUTOUT_S3_SECRET_ACCESS_KEY: 'secret-of-the-bucket',
  };
  const lines = describeConfig(loadConfig(env));
  const shown = Object.fromEntries(lines.map(({ variable, value }) => [variable, value]));
  t.like(shown, {
    CUTOUT_PRICE_PREVIEW: '0.25',
    CUTOUT_PRICE_FULL: '1',
    CUTOUT_PACKS: '50=9.00 EUR, 500=4900 JPY',
    CUTOUT_ADMIN_TOKEN: '(set)',
    CUTOUT_S3_ENDPOINT: 'https://s3.example/b',
  });
  const text = JSON.stringify(lines);
  for (const secret of ['sk_test', 'whsec_of', 'operator-token', 'secret-of']) t.false(text.includes(secret));
});

const oneProvider = {
  CUTOUT_PUBLIC_URL: 'https://cutout.example.com',
  CUTOUT_OIDC_ISSUER: 'https://a.test',
  CUTOUT_OIDC_CLIENT_ID: 'cutout',
};
const twoProviders = {
  ...oneProvider,
  CUTOUT_OIDC_ISSUER: 'https://a.test,https://b.test',
  CUTOUT_OIDC_CLIENT_ID: 'cutout,cutout',
};

test('operator rules: without a number for the only provider, with one for several', (t) => {
  const plain = loadConfig({
    ...oneProvider,
    CUTOUT_OIDC_OPERATORS: 'Ann@example.com, bob@example.com',
    CUTOUT_OIDC_OPERATOR_CLAIM: 'groups=cn=admins,dc=example',
  });
  t.deepEqual(plain.signIn.oidcOperators, [
    { provider: undefined, email: 'ann@example.com' },
    { provider: undefined, email: 'bob@example.com' },
  ]);
  t.deepEqual(plain.signIn.oidcOperatorClaim, [
    { provider: undefined, name: 'groups', value: 'cn=admins,dc=example' },
  ]);
  const placed = loadConfig({
    ...twoProviders,
    CUTOUT_OIDC_OPERATORS: '2:Ann@example.com',
    CUTOUT_OIDC_OPERATOR_CLAIM: '1:groups=cn=admins,dc=example, 2:https://b.test/roles=ops',
  });
  t.deepEqual(placed.signIn.oidcOperators, [{ provider: 2, email: 'ann@example.com' }]);
  t.deepEqual(placed.signIn.oidcOperatorClaim, [
    { provider: 1, name: 'groups', value: 'cn=admins,dc=example' },
    { provider: 2, name: 'https://b.test/roles', value: 'ops' },
  ]);
  const shown = describeConfig(placed).filter(({ variable }) => variable.startsWith('CUTOUT_OIDC_OPERATOR'));
  t.deepEqual(
    shown.map(({ value }) => value),
    ['1:groups=cn=admins,dc=example, 2:https://b.test/roles=ops', '2:ann@example.com'],
  );
});

for (const [what, more, said] of [
  [
    'an address of nobody knows which',
    { CUTOUT_OIDC_OPERATORS: '1:a@b.test,ann@example.com' },
    /CUTOUT_OIDC_OPERATORS .*2 providers .*1:ann@example\.com/,
  ],
  [
    'a claim of nobody knows which',
    { CUTOUT_OIDC_OPERATOR_CLAIM: 'groups=x' },
    /CUTOUT_OIDC_OPERATOR_CLAIM .*1:groups=x/,
  ],
  [
    'a provider that is not there',
    { CUTOUT_OIDC_OPERATORS: '3:ann@example.com' },
    /provider 3, CUTOUT_OIDC_ISSUER has 2/,
  ],
  ['no provider', { CUTOUT_OIDC_OPERATORS: '0:ann@example.com' }, /provider 0/],
  [
    'two claims of one',
    { CUTOUT_OIDC_OPERATOR_CLAIM: '1:groups=x,1:roles=y' },
    /one claim for each provider/,
  ],
] as const)
  test(`operator rules: ${what} is an error`, (t) => {
    const error = t.throws(() => loadConfig({ ...twoProviders, ...more }), { instanceOf: UserError });
    t.regex(error?.message ?? '', said);
  });

for (const removed of [
  'CUTOUT_BATCH_DELAY',
  'CUTOUT_IMPROVE_DIR',
  'CUTOUT_SESSION_IDLE',
  'CUTOUT_SESSION_MAX',
  'CUTOUT_RUNTIMES_DIR',
  'CUTOUT_STRIPE_SUCCESS_URL',
  'CUTOUT_STRIPE_CANCEL_URL',
])
  test(`a setting that was removed ends the start: ${removed}`, (t) => {
    t.throws(() => loadConfig({ [removed]: '/srv' }), {
      message: `${removed} is not a setting of Cutout. \`cutout config\` lists all of them.`,
    });
  });
