import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { cli, modelsFolder, startServing, temporaryFolder } from '../fixtures/cli.ts';
import { scene } from '../fixtures/images.ts';
import { form } from '../fixtures/service.ts';

test('an image submitted to a running server is listed, exported and deleted by `cutout improve`', async (t) => {
  const data = temporaryFolder(t);
  const env = { CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')) };
  const server = await startServing(t, env);
  const image = await scene({ width: 80, height: 60 });
  const answer = await fetch(`${server.url}/v1.0/improve`, {
    method: 'POST',
    headers: { 'X-Api-Key': readFileSync(path.join(data, 'local-key'), 'utf8').trim() },
    body: form({ image_file: image, tag: 'hair' }),
  });
  t.is(answer.status, 200);
  const { id } = (await answer.json()) as { id: string };

  const listed = await cli(t, ['improve', 'list', '--format', 'json'], env);
  t.is(listed.code, 0, listed.stderr);
  t.like(JSON.parse(listed.stdout.toString()), [{ id, account: 'local', tag: 'hair', width: 80 }]);
  const folder = path.join(data, 'exported');
  t.is((await cli(t, ['improve', 'export', folder], env)).code, 0);
  t.deepEqual(readFileSync(path.join(folder, `${id}.jpg`)), image);

  t.is((await cli(t, ['improve', 'delete', id], env)).code, 0);
  const kept = readdirSync(path.join(data, 'improve'), { recursive: true }).map(String);
  t.deepEqual(
    kept.filter((name) => name.endsWith('.jpg')),
    [],
  );
  const again = await cli(t, ['improve', 'delete', id], env);
  t.is(again.code, 1);
  t.regex(again.stderr, new RegExp(id));
});
