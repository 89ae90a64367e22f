// Throughput of 8 parallel 1 MP requests against bare runs of the network in their best thread setting.
import { bareRuns } from './lib/bare.js';
import { photo } from './lib/pictures.js';
import { startServer } from './lib/server.js';
import { median, ms, table } from './lib/stats.js';

const PARALLEL = 8;

export async function load({ network, seconds, cores }) {
  const picture = await photo(1);
  const settings = [
    { processes: 1, threads: cores },
    { processes: cores, threads: 1 },
    { processes: 2, threads: cores },
  ];
  const bare = [];
  const served = [];
  // In turn, twice: the machine's speed drifts.
  for (let round = 0; round < 2; round++) {
    for (const setting of settings) {
      bare.push({ ...setting, perSecond: (await bareRuns(network, { ...setting, seconds })).perSecond });
    }
    const server = await startServer();
    try {
      const times = [];
      let sent = 0;
      const begin = performance.now();
      const worker = async () => {
        while (performance.now() - begin < seconds * 1000) {
          const unique = Buffer.alloc(4);
          unique.writeUInt32LE(sent++);
          times.push(
            (await server.cutout(Buffer.concat([picture, unique]), { size: 'full', format: 'png' })).ms,
          );
        }
      };
      await Promise.all(Array.from({ length: PARALLEL }, worker));
      console.log(`served ${times.length} in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
      served.push({ perSecond: times.length / ((performance.now() - begin) / 1000), times });
    } finally {
      await server.stop();
    }
  }
  table(
    bare.map((b) => ({
      'bare processes': b.processes,
      threads: b.threads,
      'runs / s': b.perSecond.toFixed(3),
    })),
  );
  const best = Math.max(
    ...settings.map((s) =>
      median(
        bare.filter((b) => b.processes === s.processes && b.threads === s.threads).map((b) => b.perSecond),
      ),
    ),
  );
  const own = median(served.map((s) => s.perSecond));
  console.log(
    `served ${own.toFixed(3)} requests / s, median ${ms(median(served.flatMap((s) => s.times)))}; best bare ${best.toFixed(3)} runs / s; served / bare ${((100 * own) / best).toFixed(1)} %`,
  );
}
