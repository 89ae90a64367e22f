// Reports on predicted and true types.
const share = (part, whole) => (whole === 0 ? '-' : (part / whole).toFixed(3));

const line = (name, judged, other) => {
  const right = judged.filter(({ label, predicted }) => label === predicted).length;
  const rest = judged.filter(({ label }) => label !== other);
  const rightOfRest = rest.filter(({ label, predicted }) => label === predicted).length;
  return `${name.padEnd(20)}${String(judged.length).padStart(5)}  ${share(right, judged.length)}  ${share(rightOfRest, rest.length)}`;
};

/** Accuracy on all photos and on those that are not `other`, in total and by set; recall of each type. */
export function report(judged, types) {
  const other = types.indexOf('other');
  const sets = [...new Set(judged.map(({ set }) => set))].sort();
  return [
    `${''.padEnd(20)}    n  seven  without other`,
    line('all', judged, other),
    ...sets.map((set) =>
      line(
        `  ${set}`,
        judged.filter((each) => each.set === set),
        other,
      ),
    ),
    `recall  ${types
      .map((type, at) => {
        const of = judged.filter(({ label }) => label === at);
        return `${type} ${share(of.filter(({ predicted }) => predicted === at).length, of.length)}`;
      })
      .join('  ')}`,
  ].join('\n');
}

/** Rows: true types; columns: predicted types. */
export function confusion(judged, types) {
  const cell = (row, column) =>
    judged.filter(({ label, predicted }) => label === row && predicted === column).length;
  return [
    `${''.padEnd(16)}${types.map((type) => type.slice(0, 7).padStart(8)).join('')}`,
    ...types.map(
      (type, row) =>
        type.padEnd(16) + types.map((_, column) => String(cell(row, column)).padStart(8)).join(''),
    ),
  ].join('\n');
}
