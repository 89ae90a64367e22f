#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/conv.h"
#include "low_precision/run.h"

namespace cutout::low_precision {

/// MatMuls of the same rows with constant matrices in bf16, each with a bias: rows and matrices
/// are rounded to the nearest bf16, to even; sums and biases are floats.
class MatMul {
 public:
  /// `columns` are those of each matrix, `inputs` the rows of all. `weights` are the matrices as
  /// src/compiler/lowPrecision/pack.ts packs them (packBf16 of a 1x1 kernel), one behind the other;
  /// of columns that are no whole groups of kLanes with zeros behind them, as in `bias`. Both are
  /// borrowed for as long as the matmul lives. kModel for anything that does not fit together.
  static Status make(std::int64_t inputs, std::span<const std::int64_t> columns, bool gelu,
                     std::span<const float> bias, std::span<const std::int8_t> weights,
                     MatMul& matmul);

  [[nodiscard]] int inputs() const { return inputs_; }
  /// Columns of each matrix.
  [[nodiscard]] const std::vector<int>& columns() const { return columns_; }

  /// Memory of a run with so many rows, to be aligned to Plan::kAlignment.
  [[nodiscard]] std::size_t bytes_of_run(std::size_t rows) const;

  /// Writes [rows, columns] of each matrix for `input`, [rows, inputs]. `token` may be null; a
  /// stopped one ends the run with its reason.
  Status run(ConvKernel kernel, std::span<const float> input, std::size_t rows,
             std::span<float* const> outputs, std::span<std::uint8_t> memory,
             const Parallel& parallel, const CancelToken* token) const;

 private:
  [[nodiscard]] std::size_t block_bytes(std::size_t rows) const;
  void block(ConvKernel kernel, const float* input, std::size_t first, int rows,
             std::span<float* const> outputs, std::uint8_t* memory) const;

  int inputs_ = 0;
  bool gelu_ = false;
  std::vector<int> columns_;
  std::vector<Conv> convs_;  // one for each matrix
};

}  // namespace cutout::low_precision
