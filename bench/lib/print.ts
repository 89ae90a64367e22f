import { type Figure, isMet, type Report } from './outcome.ts';
import { tableText, withUnit } from './table.ts';

const goalText = ({ median, unit, goal }: Figure): string => {
  if (!goal) return '';
  const [word, value] = 'atMost' in goal ? ['at most', goal.atMost] : ['at least', goal.atLeast];
  return `${word} ${withUnit(value, unit)}: ${isMet(median, goal) ? 'met' : 'MISSED'}`;
};

/** A report for a terminal: tables and the figures with goals; plots are on the page only. */
export function reportText(report: Report): string {
  const { title, started, seconds, machine, versions, settings, figures, parts, notes = [] } = report;
  const line = (facts: Readonly<Record<string, unknown>>) =>
    Object.entries(facts)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(' · ');
  const blocks = parts.flatMap((part) =>
    part.kind === 'table' ? [tableText(part)] : part.kind === 'text' ? [`${part.text}\n`] : [],
  );
  const goals = figures.filter(({ goal }) => goal);
  if (goals.length > 0) {
    blocks.push(
      tableText({
        kind: 'table',
        title: 'Figures to reach',
        columns: ['figure', 'median', 'goal'],
        rows: goals.map((figure) => [figure.title, withUnit(figure.median, figure.unit), goalText(figure)]),
      }),
    );
  }
  const head = [
    `${title}, ${started.slice(0, 16).replace('T', ' ')} UTC, ${seconds.toFixed(0)} s`,
    line(machine),
    line(versions),
    line(settings),
  ];
  return `\n${head.join('\n')}\n\n${blocks.join('\n')}${notes.map((note) => `\n* ${note}`).join('')}\n`;
}
