#include "low_precision/attention.h"

#include <algorithm>
#include <cmath>

#include "low_precision/blocks.h"
#include "low_precision/rows.h"

namespace cutout::low_precision {

namespace {

/// Queries that are computed at a time, a multiple of what every kernel takes at once.
constexpr int kBlockRows = 48;

/// The largest number of queries, keys, heads and channels.
constexpr int kMaxSide = 1 << 20;

/// Where in the memory of a part each thing begins.
struct Places {
  explicit Places(const Attention& of)
      : key_groups((of.keys + kLanes - 1) / kLanes),
        value_groups((of.value_channels + kLanes - 1) / kLanes),
        keys(take(packed_values(of.channels, of.keys) * sizeof(Bf16))),
        values(take(packed_values(of.keys, of.value_channels) * sizeof(Bf16))),
        queries(take(rows_of(padded_columns(of.channels)) * sizeof(Bf16))),
        scores(take(rows_of(key_groups * kLanes) * sizeof(float))),
        exponentials(take(rows_of(padded_columns(of.keys)) * sizeof(Bf16))),
        inverse_sums(take(rows_of(1) * sizeof(float))),
        result(take(rows_of(value_groups * kLanes) * sizeof(float))),
        zeros(take(zero_count() * sizeof(float))) {}

  /// Biases of both products.
  [[nodiscard]] std::size_t zero_count() const {
    return static_cast<std::size_t>(std::max(key_groups, value_groups) * kLanes);
  }

  std::size_t bytes = 0;  // of all
  int key_groups;
  int value_groups;
  std::size_t keys;    // packed
  std::size_t values;  // packed
  std::size_t queries;
  std::size_t scores;
  std::size_t exponentials;
  std::size_t inverse_sums;
  std::size_t result;  // of heads that are no whole groups
  std::size_t zeros;

 private:
  static std::size_t rows_of(int columns) {
    return std::size_t{kBlockRows} * static_cast<std::size_t>(columns);
  }
  std::size_t take(std::size_t count) {
    const std::size_t begin = bytes;
    bytes += aligned(count);
    return begin;
  }
};

/// One part's heads, one after the other.
class Worker {
 public:
  Worker(const Attention& attention, ConvKernel kernel, const Attention::Inputs& inputs,
         float* output, std::uint8_t* memory)
      : attention_(attention),
        kernel_(kernel),
        inputs_(inputs),
        output_(output),
        places_(attention),
        memory_(memory),
        scores_conv_(matmul_conv((attention.channels + 1) / 2 * 2, places_.key_groups * kLanes)),
        result_conv_(matmul_conv((attention.keys + 1) / 2 * 2, places_.value_groups * kLanes)) {
    const std::span<const float> zeros(at<float>(places_.zeros), places_.zero_count());
    std::fill_n(at<float>(places_.zeros), zeros.size(), 0.0F);
    const auto packed = [](const Bf16* from, std::size_t values) {
      return std::span(reinterpret_cast<const std::int8_t*>(from), values * sizeof(Bf16));
    };
    scores_conv_.float_bias = zeros;
    scores_conv_.weights =
        packed(at<Bf16>(places_.keys), packed_values(attention.channels, attention.keys));
    result_conv_.float_bias = zeros;
    result_conv_.weights =
        packed(at<Bf16>(places_.values), packed_values(attention.keys, attention.value_channels));
  }

  /// Packs the keys and values of a head, [batch, head].
  void open(std::size_t index) {
    const auto heads = static_cast<std::size_t>(attention_.heads);
    image_ = index / heads;
    head_ = static_cast<int>(index % heads);
    pack_rows_as_outputs(
        rows_of(inputs_.keys, attention_.keys, attention_.channels, 0, attention_.keys),
        at<Bf16>(places_.keys));
    pack_rows_as_inputs(
        rows_of(inputs_.values, attention_.keys, attention_.value_channels, 0, attention_.keys),
        at<Bf16>(places_.values));
  }

  /// Computes queries [first, first + rows) of the head.
  void block(int first, int rows) {
    const Attention& a = attention_;
    auto* const queries = at<Bf16>(places_.queries);
    round_rows(rows_of(inputs_.queries, a.queries, a.channels, first, rows), queries);
    auto* const scores = at<float>(places_.scores);
    const int score_stride = places_.key_groups * kLanes;
    multiply(scores_conv_, queries, padded_columns(a.channels), rows, scores, score_stride);

    auto* const weights = at<Bf16>(places_.exponentials);
    auto* const sums = at<float>(places_.inverse_sums);
    exponentials({scores, score_stride, rows, a.keys}, a.scale, weights, sums);

    const int width = a.heads * a.value_channels;
    float* const to =
        output_ +
        (image_ * static_cast<std::size_t>(a.queries) + static_cast<std::size_t>(first)) *
            static_cast<std::size_t>(width) +
        head_ * a.value_channels;
    const bool whole = result_conv_.outputs == a.value_channels;
    float* const made = whole ? to : at<float>(places_.result);
    const int stride = whole ? width : result_conv_.outputs;
    multiply(result_conv_, weights, padded_columns(a.keys), rows, made, stride);
    scale_rows({made, stride, rows, a.value_channels}, sums);
    if (whole) return;
    for (int row = 0; row < rows; ++row) {
      std::copy_n(made + std::ptrdiff_t{row} * stride, a.value_channels,
                  to + std::ptrdiff_t{row} * width);
    }
  }

 private:
  template <typename T>
  [[nodiscard]] T* at(std::size_t place) const {
    return reinterpret_cast<T*>(memory_ + place);
  }

  /// Rows of the head in [batch, all, heads, channels].
  [[nodiscard]] FloatRows rows_of(const float* from, int all, int channels, int first,
                                  int rows) const {
    const int width = attention_.heads * channels;
    return {from +
                (image_ * static_cast<std::size_t>(all) + static_cast<std::size_t>(first)) *
                    static_cast<std::size_t>(width) +
                head_ * channels,
            width, rows, channels};
  }

  void multiply(const Conv& conv, Bf16* from, int from_stride, int rows, float* to, int to_stride) {
    const Map input = row_map(from, rows, conv.channels, Type::kBf16, from_stride);
    const Map output = row_map(to, rows, conv.outputs, Type::kFloats, to_stride);
    kernel_(ConvTask(conv, input, output, 1), 0, 1, 0, conv.groups());
  }

  const Attention& attention_;
  ConvKernel kernel_;
  const Attention::Inputs& inputs_;
  float* output_;
  Places places_;
  std::uint8_t* memory_;
  Conv scores_conv_;
  Conv result_conv_;
  std::size_t image_ = 0;
  int head_ = 0;
};

}  // namespace

Status Attention::check() const {
  for (const int side : {queries, keys, heads, channels, value_channels}) {
    if (side < 1 || side > kMaxSide) {
      return {Code::kModel,
              "An attention in bf16 of the network has a shape that is not computed."};
    }
  }
  if (!(scale > 0) || std::isinf(scale)) {
    return {Code::kModel, "An attention in bf16 of the network has a scale that is not computed."};
  }
  return {};
}

std::size_t Attention::bytes_of_run() const {
  const auto blocks = static_cast<std::size_t>((queries + kBlockRows - 1) / kBlockRows);
  return parts_of(batch * static_cast<std::size_t>(heads) * blocks) * Places(*this).bytes;
}

Status Attention::run(ConvKernel kernel, const Inputs& inputs, float* output,
                      std::span<std::uint8_t> memory, const Parallel& parallel,
                      const CancelToken* token) const {
  const auto blocks = static_cast<std::size_t>((queries + kBlockRows - 1) / kBlockRows);
  const std::size_t units = batch * static_cast<std::size_t>(heads) * blocks;
  const std::size_t bytes = Places(*this).bytes;
  return for_each_part(units, parallel, token, [&](std::size_t part, const auto& each) {
    Worker worker(*this, kernel, inputs, output, memory.data() + part * bytes);
    bool opened = false;
    each([&](std::size_t unit) {
      const std::size_t block = unit % blocks;
      if (!opened || block == 0) worker.open(unit / blocks);
      opened = true;
      const int first = static_cast<int>(block) * kBlockRows;
      worker.block(first, std::min(kBlockRows, queries - first));
    });
  });
}

}  // namespace cutout::low_precision
