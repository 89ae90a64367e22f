// Matrix products, unrolled to four rows and two units at a time: training spends its time here. Rows are stored one
// after the other, `n` numbers each, and their number is a multiple of 4.

/** out[row * units + unit] = sum of rows[row][i] * weights[unit][i]. */
export function products(rows, weights, n, out) {
  const units = weights.length / n;
  for (let row = 0; row * n < rows.length; row += 4) {
    const [a, b, c, d] = [row * n, (row + 1) * n, (row + 2) * n, (row + 3) * n];
    for (let unit = 0; unit < units; unit += 2) {
      // An odd last unit is computed twice.
      const next = Math.min(unit + 1, units - 1);
      let [one, two, three, four] = [0, 0, 0, 0];
      let [five, six, seven, eight] = [0, 0, 0, 0];
      for (let i = 0, at = unit * n, beside = next * n; i < n; i++, at++, beside++) {
        const weight = weights[at];
        const other = weights[beside];
        const first = rows[a + i];
        const second = rows[b + i];
        const third = rows[c + i];
        const fourth = rows[d + i];
        one += weight * first;
        two += weight * second;
        three += weight * third;
        four += weight * fourth;
        five += other * first;
        six += other * second;
        seven += other * third;
        eight += other * fourth;
      }
      const at = row * units;
      out[at + unit] = one;
      out[at + units + unit] = two;
      out[at + 2 * units + unit] = three;
      out[at + 3 * units + unit] = four;
      out[at + next] = five;
      out[at + units + next] = six;
      out[at + 2 * units + next] = seven;
      out[at + 3 * units + next] = eight;
    }
  }
}

/** sums[unit][i] += sum over the rows of factors[row * units + unit] * rows[row][i]. */
export function addProducts(rows, factors, n, sums) {
  const units = sums.length / n;
  for (let row = 0; row * n < rows.length; row += 4) {
    const [a, b, c, d] = [row * n, (row + 1) * n, (row + 2) * n, (row + 3) * n];
    for (let unit = 0; unit < units; unit++) {
      const one = factors[row * units + unit];
      const two = factors[(row + 1) * units + unit];
      const three = factors[(row + 2) * units + unit];
      const four = factors[(row + 3) * units + unit];
      for (let i = 0, at = unit * n; i < n; i++, at++)
        sums[at] += one * rows[a + i] + two * rows[b + i] + (three * rows[c + i] + four * rows[d + i]);
    }
  }
}
