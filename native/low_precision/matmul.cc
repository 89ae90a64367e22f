#include "low_precision/matmul.h"

#include <algorithm>

#include "low_precision/blocks.h"
#include "low_precision/rows.h"

namespace cutout::low_precision {

namespace {

/// Rows that are multiplied at a time, a multiple of what every kernel takes at once: fewer where
/// there would be too few blocks for all threads.
constexpr std::size_t kBlockRows = 96;
constexpr std::size_t kSmallBlockRows = 48;

std::size_t block_rows(std::size_t rows) {
  return rows >= kBlockRows * kMaxRunningParts ? kBlockRows : kSmallBlockRows;
}

}  // namespace

Status MatMul::make(bool bf16, std::int64_t inputs, std::span<const std::int64_t> columns,
                    bool gelu, std::span<const float> constants,
                    std::span<const std::int8_t> weights, MatMul& matmul) {
  matmul = {};
  matmul.gelu_ = gelu;
  for (const std::int64_t each : columns) {
    const Status status = Matrix::take(bf16, inputs, each, false, constants, weights,
                                       matmul.matrices_.emplace_back());
    if (!status.ok()) return status;
  }
  matmul.inputs_ = static_cast<int>(inputs);
  if (columns.empty() || !constants.empty() || !weights.empty()) {
    return {Code::kModel, "A matmul of the network has other weights or constants than matrices."};
  }
  return {};
}

std::size_t MatMul::block_bytes(std::size_t rows) const {
  int widest = 0;  // of those that are not written in place
  for (const Matrix& matrix : matrices_) {
    if (matrix.outputs() != matrix.columns()) widest = std::max(widest, matrix.outputs());
  }
  return ProductRows::bytes(bf16(), inputs_, rows) +
         aligned(rows * static_cast<std::size_t>(widest) * sizeof(float));
}

std::size_t MatMul::bytes_of_run(std::size_t rows) const {
  const std::size_t block = block_rows(rows);
  return parts_of((rows + block - 1) / block) * block_bytes(block);
}

Status MatMul::run(ConvKernel kernel, std::span<const float> input, std::size_t rows,
                   std::span<float* const> outputs, std::span<std::uint8_t> memory,
                   const Parallel& parallel, const CancelToken* token) const {
  const std::size_t most = block_rows(rows);
  const std::size_t units = (rows + most - 1) / most;
  return for_each_part(units, parallel, token, [&](std::size_t part, const auto& each) {
    std::uint8_t* const memory_of_part = memory.data() + part * block_bytes(most);
    const ProductRows rounded(bf16(), inputs_, most, memory_of_part);
    auto* const wide =
        reinterpret_cast<float*>(memory_of_part + ProductRows::bytes(bf16(), inputs_, most));
    each([&](std::size_t unit) {
      const std::size_t first = unit * most;
      const auto count = static_cast<int>(std::min(most, rows - first));
      round_rows(
          {input.data() + first * static_cast<std::size_t>(inputs_), inputs_, count, inputs_},
          rounded.values());
      rounded.round(count);
      for (std::size_t i = 0; i < matrices_.size(); ++i) {
        const int columns = matrices_[i].columns();
        const OutputRows made{outputs[i] + first * static_cast<std::size_t>(columns), columns,
                              count, columns};
        matrices_[i].multiply(kernel, rounded, made, wide);
        if (gelu_) gelu_rows(made);
      }
    });
  });
}

}  // namespace cutout::low_precision
