import type { ConfigLine } from '../config/readConfig.ts';

/** `cutout config`: every setting with its value and origin; a `!` marks those that a fault names. */
export function showConfig(lines: readonly ConfigLine[], json: boolean, out: NodeJS.WritableStream): void {
  if (json) {
    out.write(`${JSON.stringify(lines, undefined, 2)}\n`);
    return;
  }
  const anyWrong = lines.some(({ wrong }) => wrong);
  const shown = lines.map(({ variable, value, source, help, wrong }) => ({
    variable: anyWrong ? `${wrong ? '!' : ' '} ${variable}` : variable,
    value: value === null || (Array.isArray(value) && value.length === 0) ? '-' : String(value),
    source,
    help,
  }));
  const width = (pick: (line: (typeof shown)[number]) => string) =>
    Math.max(...shown.map((line) => pick(line).length));
  const [names, values] = [width(({ variable }) => variable), width(({ value }) => value)];
  for (const { variable, value, source, help } of shown)
    out.write(`${variable.padEnd(names)}  ${value.padEnd(values)}  ${source.padEnd(11)}  ${help}\n`);
}
