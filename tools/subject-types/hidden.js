// A hidden layer trained on the residual of a linear head, by Adam with mixup and input dropout, so that it does not
// overfit sources. The same seed gives the same layer.
import { Parameters } from './adam.js';
import { seeded } from './images.js';
import { probabilities } from './logistic.js';
import { addProducts, products } from './products.js';

const UNITS = 24;
const ROUNDS = 12;
const BATCH = 128;
const RATE = 2e-3;
/** Weight decay, in units of the rate. */
const DECAY = 0.1;
/** Dropout rate of the inputs, drawn once per batch. */
const LEFT_OUT = 0.3;
/** Both parameters of mixup's beta distribution. */
const MIXED = 0.4;

function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Johnk's method. */
function beta(random, each) {
  for (;;) {
    const [x, y] = [random() ** (1 / each), random() ** (1 / each)];
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

/** Draws indices with probabilities proportional to their weights. */
function drawer(weights, random) {
  let sum = 0;
  const upTo = Float64Array.from(weights, (weight) => {
    sum += weight;
    return sum;
  });
  return () => {
    const wanted = random() * sum;
    let [low, high] = [0, upTo.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (upTo[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/**
 * Trains the layer that is added to the logits `linear` (logitsOf): `out` x ReLU(`into` x values). `rows` are
 * { values, label, weight }.
 */
export function learnHidden(rows, linear, { types, seed }) {
  const random = seeded(seed);
  const n = rows[0].values.length;
  const values = new Float32Array(rows.length * n);
  for (const [at, row] of rows.entries()) values.set(row.values, at * n);
  const draw = drawer(
    rows.map(({ weight }) => weight),
    random,
  );
  const start = Float64Array.from({ length: UNITS * n }, () => 0.7 * Math.sqrt(2 / n) * normal(random));
  const into = new Parameters(start, DECAY);
  const intoBias = new Parameters(new Float64Array(UNITS));
  const out = new Parameters(new Float64Array(types * UNITS), DECAY);
  const outBias = new Parameters(new Float64Array(types));

  const seen = new Float64Array(n);
  const x = new Float64Array(BATCH * n);
  const active = new Float64Array(BATCH * UNITS);
  const back = new Float64Array(BATCH * UNITS);

  /** Writes the mixture of two photos to row `at` of the batch, and returns its logits without the layer. */
  function mix(at) {
    const [one, other, share] = [draw(), draw(), beta(random, MIXED)];
    for (let i = 0; i < n; i++)
      x[at * n + i] = seen[i] * (share * values[one * n + i] + (1 - share) * values[other * n + i]);
    const logits = linear[one].map((value, type) => share * value + (1 - share) * linear[other][type]);
    return { one: rows[one].label, other: rows[other].label, share, logits };
  }

  /** Backpropagation of one row. */
  function judge({ one, other, share, logits }, at) {
    const from = at * UNITS;
    const errors = probabilities(
      logits.map((logit, type) => {
        let sum = logit + outBias.values[type];
        for (let unit = 0; unit < UNITS; unit++) sum += out.values[type * UNITS + unit] * active[from + unit];
        return sum;
      }),
    ).map((found) => found / BATCH);
    errors[one] -= share / BATCH;
    errors[other] -= (1 - share) / BATCH;
    for (let unit = 0; unit < UNITS; unit++) {
      let sum = 0;
      for (let type = 0; type < types; type++) {
        sum += errors[type] * out.values[type * UNITS + unit];
        out.slopes[type * UNITS + unit] += errors[type] * active[from + unit];
      }
      back[from + unit] = active[from + unit] > 0 ? sum : 0;
      intoBias.slopes[unit] += back[from + unit];
    }
    for (let type = 0; type < types; type++) outBias.slopes[type] += errors[type];
  }

  const steps = Math.floor((ROUNDS * rows.length) / BATCH);
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < n; i++) seen[i] = random() > LEFT_OUT ? 1 / (1 - LEFT_OUT) : 0;
    const batch = Array.from({ length: BATCH }, (_, at) => mix(at));
    products(x, into.values, n, active);
    for (let at = 0; at < active.length; at++)
      active[at] = Math.max(active[at] + intoBias.values[at % UNITS], 0);
    batch.forEach(judge);
    addProducts(x, back, n, into.slopes);
    const rate = RATE * (1 - step / steps);
    for (const parameters of [into, intoBias, out, outBias]) parameters.step(rate);
  }
  const line = (array, at, length) => array.slice(at * length, (at + 1) * length);
  return {
    into: Array.from({ length: UNITS }, (_, unit) => line(into.values, unit, n)),
    intoBias: intoBias.values,
    out: Array.from({ length: types }, (_, type) => line(out.values, type, UNITS)),
    outBias: outBias.values,
  };
}

/**
 * Merges the linear head into the hidden layer: each of its logits passes through two ReLU units, one for each sign.
 */
export function joined({ weights, bias }, hidden) {
  const types = weights.length;
  const units = 2 * types + hidden.into.length;
  const negative = (row) => row.map((value) => -value);
  return {
    first: [...weights, ...weights.map(negative), ...hidden.into],
    firstBias: Float64Array.from([...bias, ...negative([...bias]), ...hidden.intoBias]),
    second: hidden.out.map((row, type) => {
      const all = new Float64Array(units);
      all[type] = 1;
      all[types + type] = -1;
      all.set(row, 2 * types);
      return all;
    }),
    secondBias: hidden.outBias,
  };
}
