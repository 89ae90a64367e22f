#pragma once

#include <cstddef>
#include <span>

#include "low_precision/bf16.h"

namespace cutout::low_precision {

/// Rows of numbers, `stride` numbers apart.
template <typename Number>
struct Rows {
  Number* data = nullptr;
  std::ptrdiff_t stride = 0;
  int rows = 0;
  int columns = 0;
};
using FloatRows = Rows<const float>;
using OutputRows = Rows<float>;

/// Values of bf16 that a row of `columns` values takes: whole chunks of weights.
int padded_columns(int columns);

/// Rounds rows to bf16, each followed by zeros up to `padded_columns`, one behind the other.
void round_rows(const FloatRows& from, Bf16* to);

/// x * (1 + erf(x / sqrt(2))) / 2, within 4e-7 and 4e-7 of |x|.
void gelu_rows(const OutputRows& rows);

/// e^(scale * (x - largest of the row)) rounded to bf16, followed by zeros up to `padded_columns`;
/// `inverse_sums` are 1 / the sums of the rounded ones. Changes the rows.
void exponentials(const OutputRows& rows, float scale, Bf16* to, float* inverse_sums);

/// Multiplies every row by its factor.
void scale_rows(const OutputRows& rows, const float* factors);

/// Values of bf16 that a matrix takes as weights of a product: [inputs, outputs] in whole chunks
/// and groups.
std::size_t packed_values(int inputs, int outputs);

/// Packs rows as the weights of a product with `columns` inputs and an output for each row, as
/// src/compiler/lowPrecision/pack.ts does; what is behind them is 0.
void pack_rows_as_outputs(const FloatRows& from, Bf16* to);

/// Packs rows as the weights of a product with an input for each row and `columns` outputs.
void pack_rows_as_inputs(const FloatRows& from, Bf16* to);

}  // namespace cutout::low_precision
