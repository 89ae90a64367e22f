import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { form } from '../fixtures/service.ts';

const everythingIn = (folder: string) => readdirSync(folder, { recursive: true }).map(String).sort();

test.serial('a server writes to its own folder only: no library stores or reports anything', async (t) => {
  const [data, home, temporary] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)];
  const server = await startServing(t, {
    CUTOUT_DATA_DIR: data,
    CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')),
    HOME: home,
    TMPDIR: temporary,
    // Also when its owner sets it.
    ORT_DISABLE_TELEMETRY: '0',
  });
  const key = readFileSync(path.join(data, 'local-key'), 'utf8').trim();
  const answer = await fetch(`${server.url}/v1.0/cutout`, {
    method: 'POST',
    headers: { 'X-Api-Key': key },
    body: form({ image_file: await scene(), size: 'full' }),
  });
  t.is(answer.status, 200);
  await answer.arrayBuffer();
  server.child.kill('SIGTERM');
  t.is((await server.ended).code, 0);
  t.deepEqual(everythingIn(home), []);
  t.deepEqual(everythingIn(temporary), []);
});
