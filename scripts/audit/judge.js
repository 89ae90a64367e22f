/** Severities that prevent shipping. */
const grave = new Set(['high', 'critical']);

const sentence = (text) =>
  text
    .trim()
    .split('\n')
    .find((line) => line !== '') ?? 'no answer';

/**
 * Interprets the output of `npm audit --json`.
 * @returns {{status: number, said: string}} status 0: audited; 1: something grave is known; 2: not audited
 */
export function judge(stdout, stderr) {
  let report;
  try {
    report = JSON.parse(stdout);
  } catch {
    // Not JSON: npm itself failed.
  }
  const counts = report?.metadata?.vulnerabilities;
  if (report?.auditReportVersion !== 2 || typeof counts?.total !== 'number') {
    const why = report?.error?.summary || report?.message || stderr;
    return {
      status: 2,
      said: `NOT AUDITED: the registry could not be asked for known vulnerabilities: ${sentence(String(why))}`,
    };
  }
  const found = Object.values(report.vulnerabilities);
  const lines = found.map(({ name, severity, range, via, fixAvailable }) => {
    const advice = via
      .filter((each) => typeof each === 'object')
      .map(({ title, url }) => `${title} (${url})`);
    return `  ${severity}: ${name} ${range}${fixAvailable ? ', a fix is there' : ''}${advice.map((each) => `\n    ${each}`).join('')}`;
  });
  const bad = found.filter(({ severity }) => grave.has(severity)).length;
  const checked = `${report.metadata.dependencies?.prod ?? '?'} packages that are shipped`;
  if (found.length === 0) return { status: 0, said: `No vulnerability is known of ${checked}.` };
  const verdict = bad > 0 ? `${bad} high or critical` : 'none high or critical';
  return {
    status: bad > 0 ? 1 : 0,
    said: `${counts.total} known vulnerabilities in ${checked}, ${verdict}:\n${lines.join('\n')}`,
  };
}
