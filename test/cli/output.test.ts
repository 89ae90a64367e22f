import { writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'ava';
import { printable } from '../../src/cli/output.ts';
import { cli, modelsFolder, temporaryFolder } from '../fixtures/cli.ts';

test('what a terminal would obey is shown, everything else stays', (t) => {
  t.is(
    printable('Eve\x1b]0;pwned\x07\x1b[2J\x7f\x9b1m'),
    'Eve\\u001b]0;pwned\\u0007\\u001b[2J\\u007f\\u009b1m',
  );
  t.is(printable('a\u202egpj.exe'), 'a\\u202egpj.exe');
  const usual = 'Zoë 李\tÄ\r\n  100 % – 🐱';
  t.is(printable(usual), usual);
});

const name = 'Eve\x1b]0;pwned\x07\x1b[2J';
const obeyed = ['\x07', '\x1b'];

test('names of accounts and files reach no terminal as they are', async (t) => {
  const data = temporaryFolder(t);
  const env = { CUTOUT_DATA_DIR: data, CUTOUT_MODELS_DIR: modelsFolder(path.join(data, 'models')) };
  const photo = path.join(data, `${name}.jpg`);
  writeFileSync(photo, 'x');
  const ended = [
    await cli(t, ['accounts', 'create', name], env),
    await cli(t, ['accounts', 'list'], env),
    await cli(t, ['accounts', 'list', '--format', 'csv'], env),
    await cli(t, ['credits', 'statement', `${name}!`], env),
    await cli(t, ['run', photo, '--out', path.join(data, 'out')], env),
    await cli(t, [`--${name}`], env),
  ];
  for (const { stdout, stderr } of ended)
    t.deepEqual(
      obeyed.filter((control) => `${stdout}${stderr}`.includes(control)),
      [],
    );
  for (const i of [1, 2, 3, 4, 5]) t.regex(`${ended[i]?.stdout}${ended[i]?.stderr}`, /Eve\\u001b/, String(i));
});
