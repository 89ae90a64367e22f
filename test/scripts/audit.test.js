import test from 'ava';
import { judge } from '../../scripts/audit/judge.js';

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

test('nothing known, or nothing grave, passes', (t) => {
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
  test(`nobody to ask (${why}) is said plainly and blocks nothing`, (t) => {
    const { status, said } = judge(stdout, stderr);
    t.is(status, 0);
    t.regex(said, /^Known vulnerabilities could not be asked for: ./);
  });
