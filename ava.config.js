export default {
  files: ['build/ts/test/**/*.test.js', 'test/scripts/*.test.js', 'test/bench/*.test.js'],
  workerThreads: false,
  concurrency: 2,
  timeout: '2m',
  require: ['./scripts/test/surroundings.js'],
  nodeArguments: ['--enable-source-maps', '--disable-warning=ExperimentalWarning'],
};
