import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import test from 'ava';
import { judge } from '../../scripts/audit/judge.js';
import { inRoot } from '../../scripts/setup/paths.js';

const report = (...severities) =>
  JSON.stringify({
    auditReportVersion: 2,
    vulnerabilities: Object.fromEntries(
      severities.map((severity, index) => [
        `package${index}`,
        {
          name: `package${index}`,
          severity,
          range: '<2.0.0',
          via: ['other', { title: 'Reads too far', url: 'https://example.com/advisory' }],
          fixAvailable: true,
        },
      ]),
    ),
    metadata: { vulnerabilities: { total: severities.length }, dependencies: { prod: 100 } },
  });

test('no or only minor advisories pass', (t) => {
  t.deepEqual(judge(report(), ''), {
    status: 0,
    said: 'No vulnerability is known of 100 packages that are shipped.',
  });
  const { status, said } = judge(report('low', 'moderate'), '');
  t.is(status, 0);
  t.regex(said, /2 known vulnerabilities.*none high or critical/);
});

for (const severity of ['high', 'critical'])
  test(`${severity} fails and names the package, the advisory and whether there is a fix`, (t) => {
    const { status, said } = judge(report('low', severity), '');
    t.is(status, 1);
    t.regex(said, /1 high or critical/);
    t.regex(said, new RegExp(`${severity}: package1 <2\\.0\\.0, a fix is there`));
    t.regex(said, /Reads too far \(https:\/\/example\.com\/advisory\)/);
  });

for (const [why, stdout, stderr] of [
  ['a refusal', '{"message":"405 Method Not Allowed","statusCode":405,"error":{"summary":""}}', ''],
  ['no connection', '{"error":{"code":"ENOTFOUND","summary":"request failed"}}', ''],
  ['no JSON', '', 'npm error network timeout'],
  ['another format', '{"auditReportVersion":3,"vulnerabilities":{}}', ''],
])
  test(`an audit without an answer (${why}) does not pass: it reports that nothing was audited, and why`, (t) => {
    const { status, said } = judge(stdout, stderr);
    t.is(status, 2);
    t.regex(said, /^NOT AUDITED: .+ could not be asked for known vulnerabilities: ./);
  });

/** Runs the audit against a registry that gives this answer; returns exit status and last line. */
async function audited(t, status, body) {
  const server = createServer((_req, res) => {
    res.writeHead(status, { 'content-type': 'application/json' });
    res.end(JSON.stringify(body));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const registry = `http://127.0.0.1:${server.address().port}/`;
  const child = spawn(process.execPath, [inRoot('scripts', 'audit.js')], {
    env: { ...process.env, npm_config_registry: registry, NPM_CONFIG_REGISTRY: registry },
  });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, said };
}

test('a registry without audits: exit status 2, and its reason', async (t) => {
  const { code, said } = await audited(t, 405, { message: 'there are no audits here' });
  t.is(code, 2);
  t.regex(said, /^NOT AUDITED: .*405/);
});

test('a registry without advisories: exit status 0', async (t) => {
  const { code, said } = await audited(t, 200, {});
  t.is(code, 0);
  t.regex(said, /^No vulnerability is known of \d+ packages/);
});
