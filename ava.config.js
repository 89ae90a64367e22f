export default {
  files: ['build/ts/test/**/*.test.js', 'test/scripts/*.test.js', 'test/bench/*.test.js'],
  workerThreads: false,
  concurrency: 2,
  timeout: '5m',
  nodeArguments: ['--enable-source-maps'],
};
