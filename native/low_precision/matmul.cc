#include "low_precision/matmul.h"

#include <algorithm>

#include "low_precision/blocks.h"
#include "low_precision/rows.h"

namespace cutout::low_precision {

namespace {

/// The largest side of a matrix.
constexpr std::int64_t kMaxSide = 1 << 20;

/// Rows that are multiplied at a time, a multiple of what every kernel takes at once: fewer where
/// there would be too few blocks for all threads.
constexpr std::size_t kBlockRows = 96;
constexpr std::size_t kSmallBlockRows = 48;

std::size_t block_rows(std::size_t rows) {
  return rows >= kBlockRows * kMaxRunningParts ? kBlockRows : kSmallBlockRows;
}

Status refused(const char* what) {
  return {Code::kModel, std::string("A matmul in bf16 of the network cannot be used: ") + what};
}

constexpr std::int64_t whole_groups(std::int64_t columns) {
  return (columns + kLanes - 1) / kLanes * kLanes;
}

}  // namespace

Status MatMul::make(std::int64_t inputs, std::span<const std::int64_t> columns, bool gelu,
                    std::span<const float> bias, std::span<const std::int8_t> weights,
                    MatMul& matmul) {
  if (inputs < 1 || inputs > kMaxSide) return refused("its number of inputs.");
  if (columns.empty()) return refused("it has no columns.");
  matmul = {};
  matmul.inputs_ = static_cast<int>(inputs);
  matmul.gelu_ = gelu;
  for (const std::int64_t each : columns) {
    if (each < 1 || each > kMaxSide) return refused("its number of columns.");
    const auto made = static_cast<int>(whole_groups(each));
    // Pairs of inputs are multiplied.
    Conv conv = matmul_conv((matmul.inputs_ + 1) / 2 * 2, made);
    const auto biases = static_cast<std::size_t>(made);
    const std::size_t bytes =
        static_cast<std::size_t>(conv.groups()) * conv.chunks.size() * kChunkBytes;
    if (bias.size() < biases || weights.size() < bytes) {
      return refused("it has fewer weights or biases than columns.");
    }
    conv.float_bias = bias.first(biases);
    conv.weights = weights.first(bytes);
    bias = bias.subspan(biases);
    weights = weights.subspan(bytes);
    matmul.columns_.push_back(static_cast<int>(each));
    matmul.convs_.push_back(std::move(conv));
  }
  if (!bias.empty() || !weights.empty()) {
    return refused("it has more weights or biases than columns.");
  }
  return {};
}

std::size_t MatMul::block_bytes(std::size_t rows) const {
  int widest = 0;  // of those that are not written in place
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    if (convs_[i].outputs != columns_[i]) widest = std::max(widest, convs_[i].outputs);
  }
  return aligned(rows * static_cast<std::size_t>(padded_columns(inputs_)) * sizeof(Bf16)) +
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
    each([&](std::size_t unit) {
      const std::size_t first = unit * most;
      block(kernel, input.data(), first, static_cast<int>(std::min(most, rows - first)), outputs,
            memory.data() + part * block_bytes(most));
    });
  });
}

void MatMul::block(ConvKernel kernel, const float* input, std::size_t first, int rows,
                   std::span<float* const> outputs, std::uint8_t* memory) const {
  auto* const rounded = reinterpret_cast<Bf16*>(memory);
  const int padded = padded_columns(inputs_);
  round_rows({input + first * static_cast<std::size_t>(inputs_), inputs_, rows, inputs_}, rounded);
  auto* const wide =
      reinterpret_cast<float*>(memory + aligned(static_cast<std::size_t>(rows) *
                                                static_cast<std::size_t>(padded) * sizeof(Bf16)));
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    const Conv& conv = convs_[i];
    const int columns = columns_[i];
    float* const to = outputs[i] + first * static_cast<std::size_t>(columns);
    const OutputRows made{to, columns, rows, columns};
    multiply_rows(kernel, conv, rounded, padded, made, wide);
    if (gelu_) gelu_rows(made);
  }
}

}  // namespace cutout::low_precision
