import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { unless } from '../fixtures/leftOut.ts';
import { eventually, form } from '../fixtures/service.ts';

const missing = spawnSync('prlimit', ['--version']).error ? 'prlimit of util-linux' : undefined;

unless(missing)(
  'a server whose disk is full is not ready within a second of the first refusal, and is ready again when there is room',
  async (t) => {
    t.timeout(120_000);
    const data = temporaryFolder(t);
    const log = path.join(data, 'log');
    const server = await startServing(
      t,
      { CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')) },
      ['sh', '-c', `exec "$@" >>'${log}'`, 'sh'],
    );
    const key = readFileSync(path.join(data, 'local-key'), 'utf8').trim();
    const image = await scene();
    const post = (size: string) =>
      fetch(`${server.url}/v1.0/removebg`, {
        method: 'POST',
        headers: { 'X-Api-Key': key },
        body: form({ image_file: image, size }),
      });
    const ready = async () => (await fetch(`${server.url}/health/ready`)).status;
    t.is((await post('full')).status, 200);
    t.is(await ready(), 200);

    // No file of the process may grow, as on a disk without room; space that a file has can be written.
    const limitFiles = (bytes: string) =>
      execFileSync('prlimit', [`--pid=${server.child.pid}`, `--fsize=${bytes}:`]);
    const logged = statSync(log).size;
    limitFiles(String(Math.min(statSync(path.join(data, 'books.db-wal')).size, logged)));
    const refused = await post('preview');
    const at = performance.now();
    t.is(refused.status, 503);
    await eventually(async () => (await ready()) === 503);
    t.true(performance.now() - at < 2500, 'sooner than the timer of the sweeps alone, which is 5 s');
    t.regex(await (await fetch(`${server.url}/health/ready`)).text(), /cannot read and write a store/);
    t.is((await fetch(`${server.url}/health/live`)).status, 200);

    limitFiles('unlimited');
    await eventually(async () => (await ready()) === 200);
    t.is((await post('preview')).status, 200);
    // The log on that disk goes on; a line is written after its answer.
    await eventually(async () => statSync(log).size > logged);
    t.notRegex(server.stderr(), /TimeoutNegativeWarning/);
  },
);
