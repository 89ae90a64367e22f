/** [rows, columns] of a matrix, row after row. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** Returns columns `from` to `to` of a matrix. */
export function columnsOf({ rows, columns, values }: Matrix, from: number, to: number): Matrix {
  const part = new Float32Array(rows * (to - from));
  for (let row = 0; row < rows; row++)
    part.set(values.subarray(row * columns + from, row * columns + to), row * (to - from));
  return { rows, columns: to - from, values: part };
}

/** Returns a matrix with rows for columns. */
export function transposed({ rows, columns, values }: Matrix): Matrix {
  const to = new Float32Array(values.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      to[column * rows + row] = values[row * columns + column] ?? 0;
  return { rows: columns, columns: rows, values: to };
}

/** Returns a b, with sums in double precision. */
export function product(a: Matrix, b: Matrix): Matrix {
  const values = new Float32Array(a.rows * b.columns);
  for (let row = 0; row < a.rows; row++)
    for (let column = 0; column < b.columns; column++) {
      let sum = 0;
      for (let k = 0; k < a.columns; k++)
        sum += (a.values[row * a.columns + k] ?? 0) * (b.values[k * b.columns + column] ?? 0);
      values[row * b.columns + column] = sum;
    }
  return { rows: a.rows, columns: b.columns, values };
}

export const plus = (a: Float32Array, b: Float32Array): Float32Array =>
  a.map((value, at) => value + (b[at] ?? 0));
