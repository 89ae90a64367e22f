import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { root } from '../fixtures/cli.ts';

/** `src/{a,b}.ts` as both. */
function expanded(text: string): string[] {
  const [whole, inner = ''] = /\{([^}]*)\}/.exec(text) ?? [];
  return whole === undefined ? [text] : inner.split(',').flatMap((one) => expanded(text.replace(whole, one)));
}

for (const file of ['docs/threat-model.md', 'docs/operations.md', 'SECURITY.md'])
  test(`${file}: every file it names is there`, (t) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    const folders = 'src|native|binding|deploy|test|docs|scripts|web|models';
    const named = [...text.matchAll(new RegExp(`(?<=\`)((?:${folders})/[\\w./{},-]*)(?=\`)`, 'g'))];
    const linked = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)];
    const all = [
      ...named.flatMap(([, name = '']) => expanded(name)).map((name) => path.join(root, name)),
      ...linked.map(([, name = '']) => path.join(root, path.dirname(file), name)),
    ];
    t.true(all.length > 0);
    for (const one of all) t.true(existsSync(one), path.relative(root, one));
  });
