export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const ms = (value) => `${value.toFixed(0)} ms`;
export const ratio = (value) => `${value.toFixed(3)}×`;

/** Prints rows of equal objects as an aligned table. */
export function table(rows) {
  const names = Object.keys(rows[0] ?? {});
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => String(row[name]).length)));
  const line = (cells) => cells.map((cell, i) => String(cell).padStart(widths[i])).join('   ');
  console.log(line(names));
  for (const row of rows) console.log(line(names.map((name) => row[name])));
}
