import type { Thumbnail } from '../image/thumbnail.ts';
import { megabytes } from './output.ts';

/** What one network made of one photo. */
export type ComparedResult =
  | { readonly image: Thumbnail; readonly runMs: number; readonly wholeMs: number }
  | { readonly fault: string };

export interface ComparedNetwork {
  readonly name: string;
  readonly title: string;
  readonly licence: string;
  /** Length of the published file. */
  readonly bytes: number;
  /** Why it could not be opened: it then has no results. */
  readonly fault?: string;
  /** One for each photo, in their order. */
  readonly results: readonly ComparedResult[];
}

export interface ComparedPhoto {
  readonly name: string;
  readonly image: Thumbnail;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (letter) => entities[letter] ?? letter);

/** What a cut-out is shown on; `matte` shows its alpha in white on black. */
const backgrounds = ['white', 'black', 'green', 'checker', 'matte'] as const;

const style = `
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 1500px; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; } td, th { padding: .2rem 1.2rem .2rem 0; text-align: left; }
td.number, th.number { text-align: right; }
section { margin: 1.2rem 0; } h3 { font-size: 1rem; margin: 0 0 .4rem; }
h3 span { font-weight: normal; opacity: .75; }
.row { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); }
figure { margin: 0; } figcaption { font-size: .8rem; opacity: .75; }
.source { max-width: 320px; }
.image { background-image: var(--image); background-size: 100% 100%; }
.white { background-color: #fff; } .black { background-color: #000; } .green { background-color: #00b140; }
.checker { background-image: var(--image), repeating-conic-gradient(#ccc 0 25%, #fff 0 50%); background-size: 100% 100%, 16px 16px; }
.matte { background: #000; } .matte::before { content: ''; display: block; height: 100%; background: #fff; mask: var(--image) 0 0 / 100% 100%; }
.fault { color: #c00; }
`;

const dataUrl = ({ bytes }: Thumbnail) => `url(data:image/webp;base64,${bytes.toString('base64')})`;
const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

const faultHtml = (fault: string) => `<p class="fault">${escapeHtml(fault)}</p>`;

function resultHtml({ name, licence, bytes }: ComparedNetwork, result: ComparedResult): string {
  const about = [escapeHtml(licence), megabytes(bytes)];
  if ('fault' in result) {
    return `<section><h3>${escapeHtml(name)} <span>${about.join(' · ')}</span></h3>${faultHtml(result.fault)}</section>`;
  }
  const { image, runMs, wholeMs } = result;
  about.push(`run ${seconds(runMs)}`, `whole image ${seconds(wholeMs)}`);
  const figures = backgrounds.map((ground) => {
    const label = ground === 'matte' ? 'matte' : `on ${ground}`;
    const title = escapeHtml(`${name}, ${label}`);
    return `<figure><div class="image ${ground}" role="img" aria-label="${title}" style="aspect-ratio:${image.width}/${image.height}"></div><figcaption>${label}</figcaption></figure>`;
  });
  return `<section style="--image:${dataUrl(image)}"><h3>${escapeHtml(name)} <span>${about.join(' · ')}</span></h3><div class="row">${figures.join('')}</div></section>`;
}

function networkRow({ name, title, licence, bytes, fault, results }: ComparedNetwork): string {
  const runs = results.flatMap((result) => ('fault' in result ? [] : [result]));
  const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const failed = results.length - runs.length;
  const times =
    runs.length === 0
      ? ['–', '–']
      : [seconds(mean(runs.map(({ runMs }) => runMs))), seconds(mean(runs.map(({ wholeMs }) => wholeMs)))];
  const note = fault ?? (failed > 0 ? `${failed} of ${results.length} photos failed` : '');
  return `<tr><td>${escapeHtml(name)}</td><td>${escapeHtml(title)}</td><td>${escapeHtml(licence)}</td><td class="number">${megabytes(bytes)}</td>${times
    .map((time) => `<td class="number">${time}</td>`)
    .join('')}<td class="fault">${escapeHtml(note)}</td></tr>`;
}

/**
 * A page of networks' results that needs no other file: images are embedded, each once, and no script runs.
 * @param about what was measured, and on which machine: one sentence
 */
export function comparisonPage(
  photos: readonly ComparedPhoto[],
  networks: readonly ComparedNetwork[],
  about: string,
): string {
  const parts = photos.map(({ name, image }, at) => {
    const rows = networks.map((network) => {
      const result = network.results[at];
      return result ? resultHtml(network, result) : '';
    });
    return `<h2>${escapeHtml(name)}</h2>
<div class="source" style="--image:${dataUrl(image)}"><div class="image" role="img" aria-label="${escapeHtml(name)}" style="aspect-ratio:${image.width}/${image.height}"></div></div>
${rows.join('\n')}`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Networks compared</title>
<style>${style}</style>
</head>
<body>
<h1>Networks compared</h1>
<p>${escapeHtml(about)}</p>
<table><thead><tr><th>Network</th><th></th><th>Licence</th><th class="number">Size</th><th class="number">Run</th><th class="number">Whole image</th><th></th></tr></thead>
<tbody>
${networks.map(networkRow).join('\n')}
</tbody></table>
${parts.join('\n')}
</body>
</html>
`;
}
