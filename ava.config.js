export default {
  files: ['build/ts/test/**/*.test.js', 'test/scripts/*.test.js', 'test/bench/*.test.js'],
  workerThreads: false,
  concurrency: 2,
  // Without any result: only what hangs takes so long, also on a machine that is in use.
  timeout: '10m',
  require: ['./scripts/test/surroundings.js'],
  nodeArguments: ['--enable-source-maps', '--disable-warning=ExperimentalWarning'],
};
