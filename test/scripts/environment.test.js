import path from 'node:path';
import test from 'ava';
import { testEnvironment } from '../../scripts/test/environment.js';

const hostile = {
  PATH: '/usr/bin',
  CUTOUT_PORT: 'nonsense',
  CUTOUT_DATA_DIR: '/nowhere',
  CUTOUT_TEST_MODELS: '/models',
  HTTP_PROXY: 'http://127.0.0.1:1',
  https_proxy: 'http://127.0.0.1:1',
  NODE_OPTIONS: '--max-old-space-size=64',
  PGHOST: 'elsewhere',
  PGPASSWORD: 'secret',
  REDIS_URL: 'redis://elsewhere',
  AWS_ACCESS_KEY_ID: 'a',
  OTEL_SDK_DISABLED: 'true',
  npm_config_nodedir: '/nowhere',
  LD_PRELOAD: '/nowhere/library.so',
  CI: 'true',
  TZ: 'Pacific/Kiritimati',
  LANG: 'tr_TR.UTF-8',
  LC_ALL: 'tr_TR.UTF-8',
  HOME: '/home/somebody',
};

test('tests inherit only the variables that they need', (t) => {
  const { LD_PRELOAD, MALLOC_ARENA_MAX, UV_THREADPOOL_SIZE, HOME, NODE_COMPILE_CACHE, ...rest } =
    testEnvironment(hostile);
  t.deepEqual(rest, {
    PATH: '/usr/bin',
    CUTOUT_TEST_MODELS: '/models',
    PYENV_ROOT: path.join(process.env.HOME, '.pyenv'),
    PYTHONUSERBASE: path.join(process.env.HOME, '.local'),
    ORT_DISABLE_TELEMETRY: '1',
    TZ: 'UTC',
    LANG: 'C.UTF-8',
  });
  t.not(HOME, hostile.HOME);
  t.true(path.isAbsolute(NODE_COMPILE_CACHE));
  t.false('NODE_COMPILE_CACHE' in testEnvironment({ ...hostile, NODE_V8_COVERAGE: '/coverage' }));
  t.not(LD_PRELOAD, hostile.LD_PRELOAD);
  t.is(Boolean(LD_PRELOAD), !MALLOC_ARENA_MAX);
  t.true(Number(UV_THREADPOOL_SIZE) >= 4);
  t.deepEqual(testEnvironment({ ...rest, HOME }), testEnvironment(hostile), 'given twice it is the same');
});

test('this test runs in that environment', (t) => {
  const { NODE_ENV: _, ...own } = process.env;
  t.deepEqual(own, testEnvironment(own));
  t.is(new Date(2026, 0, 1).getTimezoneOffset(), 0);
});
