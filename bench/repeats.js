// Requests that are repeated and answered from kept results, 100 at a time: how many a second, and what of the
// server's processor time each takes. Client and server share the machine; the client is the lesser part.
import { readFile } from 'node:fs/promises';
import { Pool } from 'undici';
import { photo } from './lib/pictures.js';
import { memory, startServer } from './lib/server.js';
import { median, table } from './lib/stats.js';

const PARALLEL = 100;
/** Of the times in /proc/<pid>/stat: USER_HZ, 100 on every Linux that Node runs on. */
const TICK_MS = 10;

/** Processor time of a process so far, all threads, in milliseconds. */
async function processorMs(pid) {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function multipart(picture, fields) {
  const boundary = 'boundary-of-the-bench';
  const part = (name, more, value) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ];
  const parts = [
    ...Object.entries(fields).flatMap(([name, value]) => part(name, '', value)),
    ...part('image_file', '; filename="photo.jpg"', picture),
    Buffer.from(`--${boundary}--\r\n`),
  ];
  return { body: Buffer.concat(parts), type: `multipart/form-data; boundary=${boundary}` };
}

export async function repeats({ megapixels, seconds }) {
  const server = await startServer({ CUTOUT_RATE_LIMIT: '0', CUTOUT_LOG_LEVEL: 'info' });
  const pool = new Pool(server.url, { connections: PARALLEL });
  const rows = [];
  try {
    for (const size of megapixels) {
      const picture = await photo(size);
      const { body, type } = multipart(picture, { size: 'preview', format: 'jpg' });
      for (const by of ['image', 'key']) {
        const post = async () => {
          const begin = performance.now();
          const answer = await pool.request({
            path: '/v1.0/removebg',
            method: 'POST',
            headers: {
              'x-api-key': server.key,
              'content-type': type,
              ...(by === 'key' && { 'idempotency-key': `bench-${size}` }),
            },
            body,
          });
          const bytes = (await answer.body.arrayBuffer()).byteLength;
          if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
          return { ms: performance.now() - begin, bytes, replayed: answer.headers['idempotent-replayed'] };
        };
        const { bytes } = await post();
        const times = [];
        const used = await processorMs(server.pid);
        const begin = performance.now();
        const worker = async () => {
          while (performance.now() - begin < seconds * 1000) {
            const { ms, replayed } = await post();
            if (replayed !== 'true') throw new Error('not a repeat');
            times.push(ms);
          }
        };
        await Promise.all(Array.from({ length: PARALLEL }, worker));
        const elapsed = performance.now() - begin;
        const processor = (await processorMs(server.pid)) - used;
        times.sort((a, b) => a - b);
        rows.push({
          MP: size,
          'same by': by,
          'upload kB': (body.length / 1000).toFixed(0),
          'result kB': (bytes / 1000).toFixed(0),
          'repeats / s': ((1000 * times.length) / elapsed).toFixed(0),
          'server ms each': (processor / times.length).toFixed(2),
          'median ms': median(times).toFixed(0),
          'p99 ms': times[Math.floor(times.length * 0.99)].toFixed(0),
          'server MB': (await memory(server.pid)).now.toFixed(0),
        });
      }
    }
  } finally {
    await pool.close();
    await server.stop();
  }
  table(rows);
}
