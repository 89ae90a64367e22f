/** The tests in every folder that depend on Node.js: streams, sockets, processes, addons, files, cryptography. */
export const tests = [
  'accounts/sessions',
  'billing/stripeCheckout',
  'cli/start',
  'engine/addon',
  'engine/native',
  'fetch/download',
  'http/cutout',
  'http/repeat',
  'http/signIn',
  'idempotency/idempotency',
  'image/libvips',
  'models/pullNpm',
  'store/sqlite',
];
