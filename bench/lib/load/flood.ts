// Sends the largest files repeatedly, many concurrently, in a separate process with a lower priority than the server's:
//   node flood.js URL KEY PARALLEL MEGABYTES SECONDS
// The files begin like a JPEG and are invalid: the server reads, hashes and refuses them. Prints the answers by their codes.
import { randomFillSync } from 'node:crypto';
import { setPriority } from 'node:os';
import { openClient } from '../client.ts';
import { closedLoop } from './generate.ts';
import { summarise } from './summary.ts';

const [url = '', key = '', parallel, megabytes, seconds] = process.argv.slice(2);
setPriority(10);
const file = randomFillSync(Buffer.alloc(Number(megabytes) * 1e6));
file.set([0xff, 0xd8, 0xff]);
const client = openClient({ url, key });
const samples = await closedLoop(
  { parallel: Number(parallel), seconds: Number(seconds) },
  async () => (await client.cutout(file, { size: 'full' })).code,
);
await client.close();
console.log(JSON.stringify(summarise(samples).codes));
