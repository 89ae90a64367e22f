// Multinomial logistic regression in double precision, full batches, a fixed number of steps.
import { Parameters } from './adam.js';
import { addProducts, products } from './products.js';

const STEPS = 80;
const RATE = 0.05;
/** Rows in a block of the matrix product. */
const BLOCK = 64;
/** As native/classify/subject_head.cc clamps. */
const MAX_SCALES = 8;

/**
 * Standardisation: mean of every feature, and `share` / its standard deviation (a smaller scale penalises weights on it
 * more); `apply` standardises a vector.
 */
export function standardise(vectors, share) {
  const n = vectors[0].length;
  const mean = new Float64Array(n);
  const square = new Float64Array(n);
  for (const vector of vectors) {
    for (let i = 0; i < n; i++) {
      mean[i] += vector[i] / vectors.length;
      square[i] += (vector[i] * vector[i]) / vectors.length;
    }
  }
  const scale = Float64Array.from(mean, (m, i) => share(i) / Math.sqrt(Math.max(square[i] - m * m, 1e-6)));
  const apply = (vector) =>
    Float64Array.from(vector, (value, i) =>
      Math.min(MAX_SCALES, Math.max(-MAX_SCALES, (value - mean[i]) * scale[i])),
    );
  return { mean, scale, apply };
}

export function logitsOf({ weights, bias }, values) {
  return weights.map((row, type) => {
    let sum = bias[type];
    for (let i = 0; i < values.length; i++) sum += row[i] * values[i];
    return sum;
  });
}

export function probabilities(logits, temperature = 1) {
  const most = Math.max(...logits);
  const raised = logits.map((logit) => Math.exp((logit - most) / temperature));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((each) => each / sum);
}

/**
 * Maximum a posteriori weights: regularised towards `prior` by `penalty` (half the squared distance). `rows` are
 * { values, label, weight }; their weights sum to 1.
 */
export function learnWeights(rows, { types, prior, penalty }) {
  const n = rows[0].values.length;
  const start = Float64Array.from(prior.flatMap((row) => [...row, 0]));
  const blocks = [];
  for (let from = 0; from < rows.length; from += BLOCK) blocks.push(blockOf(rows.slice(from, from + BLOCK)));
  const parameters = new Parameters(Float64Array.from(start));
  const { values: weights, slopes } = parameters;
  for (let step = 1; step <= STEPS; step++) {
    for (let i = 0; i < slopes.length; i++)
      slopes[i] = (i + 1) % (n + 1) === 0 ? 0 : penalty * (weights[i] - start[i]);
    for (const block of blocks) addSlopes(block, weights, types, slopes);
    parameters.step(RATE * (1 - step / (STEPS + 1)));
  }
  const row = (type) => weights.subarray(type * (n + 1), (type + 1) * (n + 1));
  return {
    weights: prior.map((_, type) => row(type).slice(0, n)),
    bias: Float64Array.from(prior, (_, type) => row(type)[n]),
  };
}

/** Blocks of rows, padded with zero rows; the last value of each row is 1, the bias's input. */
function blockOf(rows) {
  const width = rows[0].values.length + 1;
  const values = new Float64Array(BLOCK * width);
  for (const [at, row] of rows.entries()) {
    values.set(row.values, at * width);
    values[(at + 1) * width - 1] = 1;
  }
  return { values, width, rows };
}

/** Adds the gradient of the loss. */
function addSlopes({ values, width, rows }, weights, types, slopes) {
  const logits = new Float64Array(BLOCK * types);
  products(values, weights, width, logits);
  const errors = new Float64Array(BLOCK * types);
  for (const [at, { label, weight }] of rows.entries()) {
    const found = probabilities([...logits.subarray(at * types, (at + 1) * types)]);
    for (let type = 0; type < types; type++)
      errors[at * types + type] = weight * (found[type] - (type === label ? 1 : 0));
  }
  addProducts(values, errors, width, slopes);
}
