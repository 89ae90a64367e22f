// Products of a few rows with a few others, four at a time: the time of training is spent here. Rows lie one after the
// other, `n` numbers each, and their number is a multiple of 4.

/** out[row * units + unit] = sum of rows[row][i] * weights[unit][i]. */
export function products(rows, weights, n, out) {
  const units = weights.length / n;
  for (let row = 0; row * n < rows.length; row += 4) {
    const [a, b, c, d] = [row * n, (row + 1) * n, (row + 2) * n, (row + 3) * n];
    for (let unit = 0; unit < units; unit++) {
      let [one, two, three, four] = [0, 0, 0, 0];
      for (let i = 0, at = unit * n; i < n; i++, at++) {
        const weight = weights[at];
        one += weight * rows[a + i];
        two += weight * rows[b + i];
        three += weight * rows[c + i];
        four += weight * rows[d + i];
      }
      out[row * units + unit] = one;
      out[(row + 1) * units + unit] = two;
      out[(row + 2) * units + unit] = three;
      out[(row + 3) * units + unit] = four;
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
