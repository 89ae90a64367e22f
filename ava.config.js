export default {
  files: ['build/ts/test/**/*.test.js', 'test/scripts/*.test.js', 'test/bench/*.test.js'],
  workerThreads: false,
  // On two cores: a fifth of the time a file waits, for a server's start, a lease or a slow client.
  concurrency: 3,
  // Without any result: only what hangs takes so long, also on a machine that is in use.
  timeout: '10m',
  require: ['./scripts/test/surroundings.js'],
  nodeArguments: ['--enable-source-maps', '--disable-warning=ExperimentalWarning'],
};
