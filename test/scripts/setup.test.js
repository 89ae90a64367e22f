import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import test from 'ava';
import { parseSources, sourceLine } from '../../scripts/setup/headers.js';
import { hashFiles } from '../../scripts/setup/step.js';
import { familyOf, missingSentence } from '../../scripts/setup/toolchain.js';

const compiler = { key: 'cxx', what: 'a C++20 compiler' };
const cmake = { key: 'cmake', what: 'CMake' };

test('names the missing packages in the words of the system, in one sentence', (t) => {
  const debian = missingSentence([compiler, cmake], 'ID=debian\nVERSION_ID="12"\n');
  t.is(
    debian,
    'Missing a C++20 compiler, CMake: install with `apt-get install g++ cmake` and run the command again.',
  );
  t.regex(missingSentence([compiler], 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'), /apt-get install g\+\+`/);
  t.regex(
    missingSentence([compiler], 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'),
    /dnf install gcc-c\+\+`/,
  );
  t.regex(missingSentence([cmake], 'ID=alpine\n'), /apk add cmake`/);
});

test('says nothing when nothing is missing, and names tools where the system is unknown', (t) => {
  t.is(missingSentence([], 'ID=debian\n'), '');
  t.is(missingSentence([cmake], ''), 'Please install CMake and run the command again.');
  t.is(familyOf('ID=plan9\n'), undefined);
});

test("makes the source line from the machine's own Debian source, in both file formats", (t) => {
  const list = parseSources(
    [
      '# deb http://commented.example bookworm main',
      'deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib',
      'deb http://mirror.example/security bookworm-security main',
    ].join('\n'),
    false,
  );
  t.is(sourceLine(list, 'bookworm'), 'deb [signed-by=/k.gpg] http://mirror.example/debian trixie main\n');
  const deb822 = parseSources(
    [
      'Types: deb\nURIs: http://other.example/apt\nSuites: nodistro\nComponents: main\n',
      'Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n',
    ].join('\n'),
    true,
  );
  t.is(sourceLine(deb822, 'bookworm'), 'deb [signed-by=/k.gpg] http://mirror.example/debian trixie main\n');
  t.is(sourceLine(deb822, 'jammy'), undefined);
});

test('a step is repeated when a file changes, appears or is renamed', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cutout-step-'));
  writeFileSync(path.join(folder, 'a'), 'one');
  const first = await hashFiles([folder]);
  t.is(await hashFiles([folder]), first);
  writeFileSync(path.join(folder, 'a'), 'two');
  const changed = await hashFiles([folder]);
  t.not(changed, first);
  writeFileSync(path.join(folder, 'b'), '');
  t.not(await hashFiles([folder]), changed);
  t.not(await hashFiles([folder], 'other machine'), await hashFiles([folder]));
  t.not(await hashFiles([path.join(folder, 'missing')]), await hashFiles([path.join(folder, 'b')]));
});
