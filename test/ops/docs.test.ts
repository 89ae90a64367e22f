import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root, temporaryFolder } from '../fixtures/cli.ts';
import { unless } from '../fixtures/leftOut.ts';

/** Proxy configurations of docs/operations.md as read by the proxies, except for the reader's own certificates. */
for (const { language, name, program, whole, args } of [
  {
    language: 'nginx',
    name: 'nginx.conf',
    program: existsSync('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx',
    whole: (block: string, folder: string) =>
      `pid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${block
        .replace('443 ssl', `unix:${folder}/socket`)
        .replace(/^.*ssl_certificate.*$/m, '')}\n}\n`,
    args: (file: string) => ['-t', '-q', '-c', file],
  },
  {
    language: 'caddy',
    name: 'Caddyfile',
    program: 'caddy',
    whole: (block: string) => block,
    args: (file: string) => ['adapt', '--config', file],
  },
]) {
  const there = spawnSync(program, language === 'nginx' ? ['-v'] : ['version']).status === 0;
  unless(there ? undefined : `${program} is not installed`)(
    `docs/operations.md: ${language} reads its configuration`,
    (t) => {
      const text = readFileSync(path.join(root, 'docs/operations.md'), 'utf8');
      const block = new RegExp(`^\\\`\\\`\\\`${language}\\n([\\s\\S]*?)^\\\`\\\`\\\`$`, 'm').exec(text)?.[1];
      const folder = temporaryFolder(t);
      const file = path.join(folder, name);
      writeFileSync(file, whole(block ?? 'not there', folder));
      const { status, stderr } = spawnSync(program, args(file), { encoding: 'utf8' });
      t.is(status, 0, stderr);
    },
  );
}
