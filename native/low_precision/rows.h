#pragma once

#include <cstddef>
#include <cstdint>
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

/// What a row of 8 bits stands for: low + step * number.
struct RowSteps {
  float low = 0;
  float step = 0;
};

/// Rounds rows of bf16 to 256 values from their least to their largest one, halves to even; results
/// lie `stride` apart.
void quantise_rows(const Rows<const Bf16>& from, std::uint8_t* to, std::ptrdiff_t stride,
                   RowSteps* steps);

/// Turns products of such rows into those of the values that they stand for: product * step + low *
/// sums + biases, where `sums` are those of the matrix's columns; negative ones 0 with `relu`.
void unround_rows(const OutputRows& rows, const RowSteps* steps, const float* sums,
                  const float* biases, bool relu);

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
