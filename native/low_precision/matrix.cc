#include "low_precision/matrix.h"

#include <algorithm>
#include <string>

#include "low_precision/blocks.h"

namespace cutout::low_precision {

namespace {

/// The largest sides of a matrix; of 8 bits, so that its sums fit 32: 2^16 * 255 * 64.
constexpr std::int64_t kMaxSide = 1 << 20;
constexpr std::int64_t kMaxInputs8 = 1 << 16;

Status refused(const char* what) {
  return {Code::kModel, std::string("A matrix of the network cannot be used: ") + what};
}

/// Bytes between rows of 8 bits: whole chunks.
constexpr int padded_bytes(int columns) {
  return (columns + kChunkInputs - 1) / kChunkInputs * kChunkInputs;
}

std::size_t value_bytes(int columns, std::size_t rows) {
  return aligned(rows * static_cast<std::size_t>(padded_columns(columns)) * sizeof(Bf16));
}

std::size_t quantised_bytes(int columns, std::size_t rows) {
  return aligned(rows * static_cast<std::size_t>(padded_bytes(columns)));
}

}  // namespace

std::size_t ProductRows::bytes(bool bf16, int columns, std::size_t rows) {
  const std::size_t values = value_bytes(columns, rows);
  return bf16 ? values : values + quantised_bytes(columns, rows) + aligned(rows * sizeof(RowSteps));
}

ProductRows::ProductRows(bool bf16, int columns, std::size_t rows, std::uint8_t* memory)
    : bf16_(bf16),
      columns_(columns),
      values_(reinterpret_cast<Bf16*>(memory)),
      quantised_(memory + value_bytes(columns, rows)),
      steps_(reinterpret_cast<RowSteps*>(quantised_ + quantised_bytes(columns, rows))) {
  std::fill_n(values_, rows * static_cast<std::size_t>(padded_columns(columns)), Bf16{0});
  if (!bf16) std::fill_n(quantised_, quantised_bytes(columns, rows), std::uint8_t{0});
}

void ProductRows::round(int count) const {
  if (bf16_) return;
  quantise_rows({values_, padded_columns(columns_), count, columns_}, quantised_,
                padded_bytes(columns_), steps_);
}

Status Matrix::take(bool bf16, std::int64_t inputs, std::int64_t columns, bool relu,
                    std::span<const float>& constants, std::span<const std::int8_t>& weights,
                    Matrix& taken) {
  if (inputs < 1 || inputs > (bf16 ? kMaxSide : kMaxInputs8)) {
    return refused("its number of inputs.");
  }
  if (columns < 1 || columns > kMaxSide) return refused("its number of columns.");
  const auto outputs = static_cast<std::size_t>((columns + kLanes - 1) / kLanes * kLanes);
  // Four bytes of inputs are multiplied at a time.
  const int together = bf16 ? 2 : 4;
  const int read = (static_cast<int>(inputs) + together - 1) / together * together;
  taken = {};
  taken.columns_ = static_cast<int>(columns);
  taken.relu_ = relu;
  taken.conv_ = matmul_conv(bf16, read, static_cast<int>(outputs));
  const std::size_t bytes =
      static_cast<std::size_t>(taken.conv_.groups()) * taken.conv_.chunks.size() * kChunkBytes;
  if (weights.size() < bytes || constants.size() < (bf16 ? outputs : 3 * outputs)) {
    return refused("it has fewer weights or constants than columns.");
  }
  taken.conv_.weights = weights.first(bytes);
  weights = weights.subspan(bytes);
  const auto take_constants = [&constants, outputs] {
    const std::span<const float> front = constants.first(outputs);
    constants = constants.subspan(outputs);
    return front;
  };
  if (bf16) {
    taken.conv_.relu = relu;
    taken.conv_.float_bias = take_constants();
    return {};
  }
  taken.conv_.scales = take_constants();
  taken.sums_ = take_constants();
  taken.biases_ = take_constants();
  taken.no_bias_ = std::make_unique<std::int32_t[]>(outputs);
  taken.conv_.bias = {taken.no_bias_.get(), outputs};
  return {};
}

void Matrix::multiply(ConvKernel kernel, const ProductRows& rows, const OutputRows& to,
                      float* wide) const {
  if (bf16()) {
    multiply_rows(kernel, conv_, rows.values_, padded_columns(rows.columns_), to, wide);
    return;
  }
  multiply_rows(kernel, conv_, rows.quantised_, padded_bytes(rows.columns_), to, wide);
  unround_rows(to, rows.steps_, sums_.data(), biases_.data(), relu_);
}

}  // namespace cutout::low_precision
