import { createHash } from 'node:crypto';

/** Style of the reference page. Follows the reader's light or dark setting; loads nothing. */
export const style = `
:root { color-scheme: light dark; --text: #1c2024; --soft: #60646c; --line: #d9d9e0; --tint: #f4f4f7; --paper: #fff; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8e9ed; --soft: #a0a3ad; --line: #363a42; --tint: #1f2228; --paper: #16181c; --link: #7cb8ff; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; }
body { margin: 0 auto; padding: 0 1.25rem 4rem; max-width: 76rem; background: var(--paper); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
header { padding: 2.5rem 0 .5rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.02em; }
h1 small { color: var(--soft); font-size: 1rem; font-weight: 400; letter-spacing: 0; }
h2 { margin: 3rem 0 .75rem; padding-top: 1.5rem; border-top: 1px solid var(--line); font-size: 1.35rem; }
#start h2 { margin-top: 0; border: 0; }
h3 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
p { margin: .5rem 0; max-width: 48rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
nav { position: sticky; top: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: .7rem 0; background: var(--paper); border-bottom: 1px solid var(--line); font-size: .9rem; }
code, pre { font: .85em/1.5 ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
code { padding: .1em .35em; border-radius: .3em; background: var(--tint); overflow-wrap: anywhere; }
h2 code { padding: 0; background: none; font-size: .95em; font-weight: 600; }
pre { margin: .5rem 0 1rem; padding: .9rem 1.1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; background: var(--tint); }
.wide { overflow-x: auto; }
table { width: 100%; margin: .75rem 0 1.25rem; border-collapse: collapse; font-size: .9rem; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td:first-child { white-space: nowrap; }
td p { margin: 0 0 .25rem; }
.soft { color: var(--soft); }
@media (max-width: 45rem) { h1 { font-size: 1.6rem; } td, th { min-width: 8rem; } }
@media print { nav { display: none; } }
`;

/** Allows this style only: no scripts, images, fonts, frames or forms. */
export const pagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
