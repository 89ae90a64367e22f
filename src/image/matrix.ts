export type Triple = readonly [number, number, number];
/** Rows. */
export type Matrix = readonly [Triple, Triple, Triple];

const dot = ([a, b, c]: Triple, [x, y, z]: Triple): number => a * x + b * y + c * z;

export const transposed = ([a, b, c]: Matrix): Matrix => [
  [a[0], b[0], c[0]],
  [a[1], b[1], c[1]],
  [a[2], b[2], c[2]],
];

export const apply = (matrix: Matrix, vector: Triple): Triple => [
  dot(matrix[0], vector),
  dot(matrix[1], vector),
  dot(matrix[2], vector),
];

export function product(left: Matrix, right: Matrix): Matrix {
  const columns = transposed(right);
  return [apply(columns, left[0]), apply(columns, left[1]), apply(columns, left[2])];
}

/** Undefined for a matrix whose rows (nearly) lie in a plane. */
export function inverse([[a, b, c], [d, e, f], [g, h, i]]: Matrix): Matrix | undefined {
  const [A, B, C] = [e * i - f * h, f * g - d * i, d * h - e * g];
  const determinant = a * A + b * B + c * C;
  if (!(Math.abs(determinant) > 1e-6)) return undefined;
  const row = (x: number, y: number, z: number): Triple => [
    x / determinant,
    y / determinant,
    z / determinant,
  ];
  return [
    row(A, c * h - b * i, b * f - c * e),
    row(B, a * i - c * g, c * d - a * f),
    row(C, b * g - a * h, a * e - b * d),
  ];
}
