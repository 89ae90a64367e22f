import {
  type Figure,
  isMet,
  type Part,
  type Report,
  type Strips,
  type Table,
  type Text,
} from '../outcome.ts';
import { cellText, isNumeric, withUnit } from '../table.ts';
import { barsHtml, stackedHtml } from './bars.ts';
import { linesHtml } from './lines.ts';
import { style } from './style.ts';
import { escaped } from './svg.ts';

function tableHtml(table: Table): string {
  const { columns, rows } = table;
  const cell = (tag: 'td' | 'th', content: string, at: number) =>
    `<${tag}${isNumeric(table, at) ? ' class="n"' : ''}>${escaped(content)}</${tag}>`;
  const head = columns.map((name, at) => cell('th', name, at)).join('');
  const body = rows.map(
    (row) => `<tr>${columns.map((_, at) => cell('td', cellText(row[at]), at)).join('')}</tr>`,
  );
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table>`;
}

/** Images come as data: addresses only: the page loads nothing. */
function strips({ rows }: Strips): string {
  return rows
    .map(({ label, note, images }) => {
      const shown = images.map(({ caption, src, checker }) => {
        if (!src.startsWith('data:image/')) throw new Error(`not an image within the page: ${caption}`);
        return `<figure><img src="${escaped(src)}" alt="${escaped(caption)}"${checker ? ' class="checker"' : ''} loading="lazy"><figcaption>${escaped(caption)}</figcaption></figure>`;
      });
      return `<div class="strip"><h3>${escaped(label)}</h3>${note ? `<p>${escaped(note)}</p>` : ''}<div>${shown.join('')}</div></div>`;
    })
    .join('');
}

function drawn(part: Exclude<Part, Text>): string {
  switch (part.kind) {
    case 'table':
      return tableHtml(part);
    case 'bars':
      return barsHtml(part);
    case 'stacked':
      return stackedHtml(part);
    case 'lines':
      return linesHtml(part);
    case 'strips':
      return strips(part);
  }
}

function partHtml(part: Part): string {
  if (part.kind === 'text') return `<p>${escaped(part.text)}</p>`;
  const note = part.note ? `<p>${escaped(part.note)}</p>` : '';
  return `<section class="card"><h2>${escaped(part.title)}</h2>${drawn(part)}${note}</section>`;
}

function figureHtml({ title, unit, median, samples, goal }: Figure): string {
  const spread =
    samples.length > 1
      ? `${withUnit(Math.min(...samples), unit)} – ${withUnit(Math.max(...samples), unit)}, ${samples.length} times`
      : '';
  const bound =
    goal && ('atMost' in goal ? `≤ ${withUnit(goal.atMost, unit)}` : `≥ ${withUnit(goal.atLeast, unit)}`);
  const met = goal && isMet(median, goal);
  const badge = goal
    ? `<em class="${met ? 'good' : 'bad'}">${met ? '✓ goal' : '✗ goal'} ${escaped(bound ?? '')}</em>`
    : spread && `<em>${escaped(spread)}</em>`;
  return `<div class="figure" title="${escaped(spread)}"><p>${escaped(title)}</p><strong>${escaped(withUnit(median, unit))}</strong>${badge}</div>`;
}

const chips = (facts: Readonly<Record<string, unknown>>): string =>
  Object.entries(facts)
    .map(([name, value]) => `<li><i>${escaped(name)}</i>${escaped(String(value))}</li>`)
    .join('');

/** The figures with a goal first, then others while there is room for cards; every figure is in the JSON. */
const shownFigures = (figures: readonly Figure[]): readonly Figure[] => [
  ...figures.filter(({ goal }) => goal),
  ...figures.filter(({ goal }) => !goal).slice(0, Math.max(0, 8 - figures.filter(({ goal }) => goal).length)),
];

function reportHtml(report: Report): string {
  const { bench, title, started, seconds, machine, versions, settings, figures, parts, notes = [] } = report;
  const when = `${started.slice(0, 16).replace('T', ' ')} UTC · took ${Math.round(seconds)} s`;
  const cards = shownFigures(figures).map(figureHtml).join('');
  const said = notes.map((note) => `<li>${escaped(note)}</li>`).join('');
  return `<article id="${escaped(bench)}"><h1>${escaped(title)}</h1><p class="when">${escaped(when)}</p>
<ul class="chips">${chips(machine)}${chips(versions)}${chips(settings)}</ul>
${cards && `<div class="figures">${cards}</div>`}
${parts.map(partHtml).join('\n')}
${said && `<ul class="notes">${said}</ul>`}</article>`;
}

/** One HTML page that needs nothing else: no host, no script, light and dark. */
export function page(reports: readonly Report[]): string {
  const links =
    reports.length < 2
      ? []
      : reports.map(({ bench }) => `<a href="#${escaped(bench)}">${escaped(bench)}</a>`);
  const title = reports.length === 1 ? `Cutout: ${reports[0]?.title ?? ''}` : 'Cutout: benchmarks';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>${escaped(title)}</title><style>${style}</style></head><body>
<input type="checkbox" id="turn" aria-label="Turn light and dark round">
<header><b>Cutout</b><span>benchmarks</span><nav>${links.join('')}<label class="turn" for="turn">light / dark</label></nav></header>
<main>${reports.map(reportHtml).join('\n')}</main>
<footer>Medians unless said otherwise. Made by <code>npm run bench</code>; point at a bar or dot for its value.</footer>
</body></html>
`;
}
