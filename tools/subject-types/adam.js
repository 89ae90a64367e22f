// Adam (Kingma, Ba 2015) with decoupled weight decay (Loshchilov, Hutter 2019).

const MEAN = 0.9;
const SQUARE = 0.99;

/** Parameters that Adam updates by their gradients (`slopes`); `decay` is the weight decay, in units of the rate. */
export class Parameters {
  #first;
  #second;
  #decay;
  #steps = 0;

  /** `values` are updated in place. */
  constructor(values, decay = 0) {
    this.values = values;
    this.slopes = new Float64Array(values.length);
    this.#first = new Float64Array(values.length);
    this.#second = new Float64Array(values.length);
    this.#decay = decay;
  }

  /** One update by the gradients, which are reset to zero. */
  step(rate) {
    this.#steps += 1;
    const [first, second, decay] = [this.#first, this.#second, this.#decay];
    const { values, slopes } = this;
    const [scale1, scale2] = [1 / (1 - MEAN ** this.#steps), 1 / (1 - SQUARE ** this.#steps)];
    for (let i = 0; i < values.length; i++) {
      first[i] += (1 - MEAN) * (slopes[i] - first[i]);
      second[i] += (1 - SQUARE) * (slopes[i] * slopes[i] - second[i]);
      values[i] -= rate * ((first[i] * scale1) / (Math.sqrt(second[i] * scale2) + 1e-8) + decay * values[i]);
    }
    slopes.fill(0);
  }
}
