const light = `--page:#f5f6f8;--card:#fff;--ink:#171a21;--soft:#5b6472;--line:#e3e6eb;--grid:#eceef2;--accent:#3056d3;
--good:#13795b;--goodground:#e0f4ec;--bad:#b42318;--badground:#fde8e6;--check:#d9dde3;
--c1:#3f6fd8;--c2:#e2852b;--c3:#239b77;--c4:#c2467e;--c5:#8a63d2;--c6:#9a7b1c;--c7:#2b9fc4;--c8:#808997;`;

const dark = `--page:#101318;--card:#191d24;--ink:#e9ecf1;--soft:#9aa3b2;--line:#2a303a;--grid:#252b34;--accent:#8fabff;
--good:#63d3a8;--goodground:#12352a;--bad:#ff9a8f;--badground:#43201c;--check:#3a414c;
--c1:#7aa0ff;--c2:#f2a65a;--c3:#4fc9a2;--c4:#ec7fb1;--c5:#b695f5;--c6:#d6b84c;--c7:#63c6e6;--c8:#98a2b0;`;

/** Follows the system, and the switch at the top turns it round. No script, no font, no image from elsewhere. */
export const style = `
:root{color-scheme:light;${light}}
:root:has(#turn:checked){color-scheme:dark;${dark}}
@media (prefers-color-scheme:dark){
:root{color-scheme:dark;${dark}}
:root:has(#turn:checked){color-scheme:light;${light}}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:0 20px 64px}
header{max-width:1080px;margin:0 auto;padding:28px 20px 8px;display:flex;gap:16px;align-items:baseline;flex-wrap:wrap}
header b{font-size:20px;letter-spacing:-.01em}
header span{color:var(--soft)}
nav{flex:1;display:flex;gap:14px;justify-content:flex-end;flex-wrap:wrap}
a{color:var(--accent);text-decoration:none}
a:hover{text-decoration:underline}
label.turn{cursor:pointer;color:var(--soft);border:1px solid var(--line);border-radius:99px;padding:2px 12px;font-size:13px}
#turn{position:absolute;opacity:0}
#turn:focus-visible+header label.turn{outline:2px solid var(--accent)}
h1{font-size:28px;line-height:1.2;letter-spacing:-.02em;margin:40px 0 4px}
h2{font-size:16px;margin:0 0 12px}
.when{color:var(--soft);margin:0 0 16px}
.chips{display:flex;flex-wrap:wrap;gap:6px;margin:0 0 20px;padding:0;list-style:none;font-size:13px}
.chips li{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:2px 9px}
.chips i{font-style:normal;color:var(--soft);margin-right:6px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:12px;margin:0 0 16px}
.figure,.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.figure{padding:14px 16px}
.figure p{margin:0;color:var(--soft);font-size:13px;line-height:1.35;min-height:2.7em}
.figure strong{display:block;font-size:27px;letter-spacing:-.02em;line-height:1.3;font-variant-numeric:tabular-nums}
.figure em{font-style:normal;font-size:12.5px;border-radius:99px;padding:1px 9px;background:var(--grid);color:var(--soft)}
.figure em.good{background:var(--goodground);color:var(--good)}
.figure em.bad{background:var(--badground);color:var(--bad)}
.card{padding:18px 20px;margin:0 0 16px;overflow-x:auto}
.card>p{margin:10px 0 0;color:var(--soft);font-size:13.5px}
svg{display:block;width:100%;min-width:560px;height:auto}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
svg .tick,svg .axis{fill:var(--soft)}
svg .tick{font-size:11px}
svg .value{font-weight:600;font-variant-numeric:tabular-nums}
svg .marked{fill:var(--soft);font-size:11.5px}
svg .grid{stroke:var(--grid);stroke-width:1}
svg .mark{stroke:var(--soft);stroke-width:1.3;stroke-dasharray:5 4}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:0 0 12px;padding:0;font-size:13px;color:var(--soft)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:500;font-size:12.5px;text-align:left;border-bottom:1px solid var(--line);padding:4px 10px 6px;vertical-align:bottom}
td{border-bottom:1px solid var(--grid);padding:5px 10px;vertical-align:top}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{padding-left:0}
th:last-child,td:last-child{padding-right:0}
th.n,td.n{text-align:right}
.strip{margin:0 0 18px}
.strip h3{font-size:14px;margin:0 0 2px}
.strip p{margin:0 0 6px;color:var(--soft);font-size:13px}
.strip div{display:grid;grid-template-columns:repeat(auto-fit,minmax(230px,1fr));gap:12px}
figure{margin:0}
figure img{display:block;width:100%;border-radius:6px;border:1px solid var(--line)}
figure img.checker{background:repeating-conic-gradient(var(--check) 0 25%,var(--card) 0 50%) 0 0/18px 18px}
figcaption{font-size:12px;color:var(--soft);margin-top:3px}
.notes{color:var(--soft);font-size:13.5px;padding-left:18px}
footer{max-width:1080px;margin:0 auto;padding:0 20px 40px;color:var(--soft);font-size:13px}
@media print{body{background:#fff}.card,.figure{break-inside:avoid}label.turn{display:none}}
`;
