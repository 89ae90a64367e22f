import test from 'ava';
import { SecondNetworkLoader } from '../../src/server/secondNetworkLoader.ts';

/** A second network whose opening is recorded, and the notices. */
function setUp({ loaded = false, opens = true }: { loaded?: boolean; opens?: boolean } = {}) {
  const opened: { readonly fetch: boolean; readonly signal: AbortSignal }[] = [];
  const notices: string[] = [];
  const network = new SecondNetworkLoader({
    name: 'other',
    loaded,
    open: async (fetch, signal) => {
      opened.push({ fetch, signal });
      if (!opens) throw new Error('The disk is full.');
    },
    observer: { notice: (text) => void notices.push(text) },
  });
  return { network, opened, notices };
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
