import test from 'ava';
import { SecondNetworkLoader } from '../../src/server/secondNetworkLoader.ts';

/** A second network whose opening is recorded, and the notices. */
function setUp({ loaded = false, opens = true, named = false } = {}) {
  const opened: { readonly fetch: boolean; readonly signal: AbortSignal }[] = [];
  const notices: string[] = [];
  const state = { opens };
  const network = new SecondNetworkLoader({
    name: 'other',
    loaded,
    named,
    open: async (fetch, signal) => {
      opened.push({ fetch, signal });
      if (!state.opens) throw new Error('The disk is full.');
    },
    observer: { notice: (text) => void notices.push(text) },
  });
  return { network, opened, notices, state };
}

test('a missing second network is fetched once, and is used from then on', async (t) => {
  const { network, opened, notices } = setUp();
  t.false(network.loaded);
  await network.reload();
  t.deepEqual(opened, []);
  await network.fetch();
  t.true(network.loaded);
  t.is(notices.length, 2);
  await network.fetch();
  t.deepEqual(
    opened.map(({ fetch }) => fetch),
    [true],
  );
  // Loaded again without fetching anything.
  await network.reload();
  t.deepEqual(
    opened.map(({ fetch }) => fetch),
    [true, false],
  );
});

test('a second network that cannot be fetched is not used, and the notice says why', async (t) => {
  const { network, notices } = setUp({ opens: false });
  await t.notThrowsAsync(network.fetch());
  t.false(network.loaded);
  t.regex(notices.at(-1) ?? '', /other cannot be used.*The disk is full\./);
});

test('one that cannot be loaded again is left out, said, and taken again once it can', async (t) => {
  const { network, notices, state } = setUp({ loaded: true });
  state.opens = false;
  await t.notThrowsAsync(network.reload());
  t.false(network.loaded);
  t.deepEqual(notices, ['other cannot be used, and the first network runs alone: The disk is full.']);
  state.opens = true;
  await network.reload();
  t.true(network.loaded);
  const named = setUp({ loaded: true, opens: false, named: true });
  await t.throwsAsync(named.network.reload(), { message: 'The disk is full.' });
});

test('nothing is fetched after stop, and a fetch in progress ends', async (t) => {
  const { network, opened, notices } = setUp();
  await network.fetch();
  network.stop();
  t.true(opened[0]?.signal.aborted);
  const other = setUp();
  other.network.stop();
  await other.network.fetch();
  t.deepEqual([other.opened.length, other.notices.length, notices.length], [0, 0, 2]);
});
