import test from 'ava';
import { cli } from '../fixtures/cli.ts';

const wrong = { CUTOUT_PORT: '80a', CUTOUT_API_KEY: 'short secret' };

test('cutout config lists every setting', async (t) => {
  const { code, stdout, stderr } = await cli(t, ['config'], { CUTOUT_PORT: '8081' });
  t.is(code, 0);
  t.is(stderr, '');
  t.regex(stdout.toString(), /^CUTOUT_PORT +8081 +environment /m);
  t.notRegex(stdout.toString(), /^[! ]/m);
});

test('cutout config with wrong settings lists every setting, marks the wrong ones, and fails', async (t) => {
  const { code, stdout, stderr } = await cli(t, ['config'], wrong);
  t.is(code, 1);
  t.regex(stderr, /^cutout: CUTOUT_PORT must be .*"80a"/);
  t.regex(stderr, /^CUTOUT_API_KEY must be /m);
  const lines = stdout.toString();
  t.regex(lines, /^! CUTOUT_PORT +80a +environment /m);
  t.regex(lines, /^! CUTOUT_API_KEY +\(set\) +environment /m);
  t.regex(lines, /^ {2}CUTOUT_HOST +127\.0\.0\.1 +default /m);
  t.is(lines.match(/^!/gm)?.length, 2);
  t.false(lines.includes('short secret'));

  const json = await cli(t, ['config', '--json'], wrong);
  t.is(json.code, 1);
  const settings: { variable: string; wrong?: true }[] = JSON.parse(json.stdout.toString());
  t.deepEqual(
    settings.flatMap((each) => (each.wrong ? [each.variable] : [])),
    ['CUTOUT_PORT', 'CUTOUT_API_KEY'],
  );
});

test('other commands say what is wrong with the settings and nothing else', async (t) => {
  const { code, stdout, stderr } = await cli(t, ['models', 'list'], wrong);
  t.is(code, 1);
  t.is(stdout.toString(), '');
  t.regex(stderr, /CUTOUT_PORT must be/);
});
