#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cancel.h"
#include "core/status.h"
#include "low_precision/matrix.h"
#include "low_precision/run.h"

namespace cutout::low_precision {

/// MatMuls of the same rows with constant matrices (Matrix), each with a bias.
class MatMul {
 public:
  /// `columns` are those of each matrix, `inputs` the rows of all. `weights` and `constants` are
  /// those of the matrices, one behind the other, borrowed for as long as the matmul lives. kModel
  /// for anything that does not fit together.
  static Status make(bool bf16, std::int64_t inputs, std::span<const std::int64_t> columns,
                     bool gelu, std::span<const float> constants,
                     std::span<const std::int8_t> weights, MatMul& matmul);

  [[nodiscard]] int inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Matrix>& matrices() const { return matrices_; }

  /// Memory of a run with so many rows, to be aligned to Plan::kAlignment.
  [[nodiscard]] std::size_t bytes_of_run(std::size_t rows) const;

  /// Writes [rows, columns] of each matrix for `input`, [rows, inputs]. `token` may be null; a
  /// stopped one ends the run with its reason.
  Status run(ConvKernel kernel, std::span<const float> input, std::size_t rows,
             std::span<float* const> outputs, std::span<std::uint8_t> memory,
             const Parallel& parallel, const CancelToken* token) const;

 private:
  [[nodiscard]] std::size_t block_bytes(std::size_t rows) const;
  [[nodiscard]] bool bf16() const { return matrices_.front().bf16(); }

  int inputs_ = 0;
  bool gelu_ = false;
  std::vector<Matrix> matrices_;
};

}  // namespace cutout::low_precision
