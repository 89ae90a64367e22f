import path from 'node:path';
import test from 'ava';
import { describeConfig, loadConfig } from '../src/config.ts';
import { UserError } from '../src/errors.ts';

test('without a CUTOUT_ variable every value is a default', (t) => {
  const config = loadConfig({ PATH: '/bin' });
  t.is(config.port, 8080);
  t.is(config.host, '127.0.0.1');
  t.is(config.dataDir, path.resolve('data'));
  t.is(config.modelsDir, path.resolve('data', 'models'));
  t.is(config.workers, 'auto');
  t.is(config.apiKey, undefined);
  t.deepEqual(config.inputFormats, []);
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
  t.is(config.port, 9000);
  t.is(config.modelsDir, '/srv/cutout/models');
  t.is(config.device, 'cuda');
  t.is(config.threads, 3);
  t.deepEqual(config.inputFormats, ['avif', 'gif']);
  t.deepEqual(config.fetchAllow, ['minio.internal:9000', '[fd00::1]']);
  t.is(config.sources.port, 'environment');
  t.is(config.sources.host, 'default');
});

test('a variable that is set but empty counts as not set', (t) => {
  const config = loadConfig({ CUTOUT_PORT: '', CUTOUT_API_KEY: ' ' });
  t.is(config.port, 8080);
  t.is(config.sources.port, 'default');
  t.is(config.apiKey, undefined);
});

test('an unknown CUTOUT_ name is an error that names it', (t) => {
  const error = t.throws(() => loadConfig({ CUTOUT_PROT: '1' }), { instanceOf: UserError });
  t.regex(error.message, /CUTOUT_PROT/);
});

test('names for the test suite are no settings and no errors', (t) => {
  t.notThrows(() => loadConfig({ CUTOUT_TEST_MODELS: '/x' }));
});

for (const [name, value] of [
  ['CUTOUT_PORT', '70000'],
  ['CUTOUT_PORT', '80a'],
  ['CUTOUT_HOST', 'not a host'],
  ['CUTOUT_WORKERS', '0'],
  ['CUTOUT_THREADS', 'many'],
  ['CUTOUT_DEVICE', 'npu'],
  ['CUTOUT_MODEL', '../escape'],
  ['CUTOUT_INPUT_FORMATS', 'avif,svg'],
  ['CUTOUT_FETCH_ALLOW', 'http://host/'],
  ['CUTOUT_TIMEOUT', '-1'],
  ['CUTOUT_LOG_LEVEL', 'loud'],
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

test('the configuration cannot be changed', (t) => {
  const config = loadConfig({ CUTOUT_INPUT_FORMATS: 'gif' });
  t.throws(() => Object.assign(config, { port: 1 }));
  t.throws(() => (config.inputFormats as string[]).push('svg'));
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
