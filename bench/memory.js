// Peak resident memory of one request over the idle server.
import { photo } from './lib/pictures.js';
import { memory, resetPeak, startServer } from './lib/server.js';
import { table } from './lib/stats.js';

export async function memoryPeaks({ megapixels }) {
  const server = await startServer();
  const rows = [];
  try {
    await server.cutout(await photo(1), { size: 'full', format: 'png' });
    for (const size of megapixels) {
      const picture = await photo(size);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      const idle = await memory(server.pid);
      await resetPeak(server.pid);
      await server.cutout(picture, { size: '50MP', format: 'png' });
      const after = await memory(server.pid);
      rows.push({
        MP: size,
        'idle MB': idle.now.toFixed(0),
        'peak MB': after.peak.toFixed(0),
        'over idle MB': (after.peak - idle.now).toFixed(0),
        'bytes / pixel': (((after.peak - idle.now) * 2 ** 20) / (size * 1e6)).toFixed(1),
      });
    }
  } finally {
    await server.stop();
  }
  table(rows);
}
