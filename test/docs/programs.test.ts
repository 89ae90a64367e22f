import test from 'ava';
import { languages, type Request } from '../../src/http/openapi/programs.ts';
import { read } from './documents.ts';

const request: Request = {
  address: 'http://127.0.0.1:8080',
  path: '/v1.0/removebg',
  image: { kind: 'file', name: 'photo.jpg' },
  fields: [['size', 'auto']],
  files: [],
  headers: [],
  out: 'no-bg.png',
};

const shown = ['axios', 'php', 'go', 'ruby'];

test('docs/migrating.md shows the programs that test/web/code.test.ts runs', (t) => {
  const page = read('docs/migrating.md');
  for (const { id, write } of languages)
    if (shown.includes(id)) t.true(page.includes(`\n${write(request)}\n\`\`\`\n`), id);
});
