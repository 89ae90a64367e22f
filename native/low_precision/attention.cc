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

/// What a part has in its memory.
struct Buffers {
  Buffers(const Attention& of, std::uint8_t* memory)
      : key_outputs(whole_groups(of.keys)),
        value_outputs(whole_groups(of.value_channels)),
        keys(take<Bf16>(memory, packed_values(of.channels, of.keys))),
        values(take<Bf16>(memory, packed_values(of.keys, of.value_channels))),
        queries(take<Bf16>(memory, rows_of(padded_columns(of.channels)))),
        scores(take<float>(memory, rows_of(key_outputs))),
        exponentials(take<Bf16>(memory, rows_of(padded_columns(of.keys)))),
        inverse_sums(take<float>(memory, rows_of(1))),
        result(take<float>(memory, rows_of(value_outputs))),
        zeros(take<float>(memory, static_cast<std::size_t>(std::max(key_outputs, value_outputs)))) {
  }

  std::size_t bytes = 0;  // of all
  int key_outputs;        // columns in whole groups, as the next
  int value_outputs;
  std::span<Bf16> keys;    // packed
  std::span<Bf16> values;  // packed
  std::span<Bf16> queries;
  std::span<float> scores;
  std::span<Bf16> exponentials;
  std::span<float> inverse_sums;
  std::span<float> result;  // of heads that are no whole groups
  std::span<float> zeros;   // biases of both products

 private:
  static int whole_groups(int columns) { return (columns + kLanes - 1) / kLanes * kLanes; }
  static std::size_t rows_of(int columns) {
    return std::size_t{kBlockRows} * static_cast<std::size_t>(columns);
  }
  template <typename T>
  std::span<T> take(std::uint8_t* memory, std::size_t count) {
    const std::size_t begin = bytes;
    bytes += aligned(count * sizeof(T));
    if (memory == nullptr) return {};  // only the size is asked for
    return {reinterpret_cast<T*>(memory + begin), count};
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
        buffers_(attention, memory),
        scores_conv_(conv_of(attention.channels, buffers_.key_outputs, buffers_.keys)),
        result_conv_(conv_of(attention.keys, buffers_.value_outputs, buffers_.values)) {
    std::ranges::fill(buffers_.zeros, 0.0F);
  }

  /// Packs the keys and values of a head, [batch, head].
  void open(std::size_t index) {
    const auto heads = static_cast<std::size_t>(attention_.heads);
    image_ = index / heads;
    head_ = static_cast<int>(index % heads);
    pack_rows_as_outputs(
        rows_of(inputs_.keys, attention_.keys, attention_.channels, 0, attention_.keys),
        buffers_.keys.data());
    pack_rows_as_inputs(
        rows_of(inputs_.values, attention_.keys, attention_.value_channels, 0, attention_.keys),
        buffers_.values.data());
  }

  /// Computes queries [first, first + rows) of the head.
  void block(int first, int rows) {
    const Attention& a = attention_;
    Bf16* const queries = buffers_.queries.data();
    round_rows(rows_of(inputs_.queries, a.queries, a.channels, first, rows), queries);
    const int key_outputs = buffers_.key_outputs;
    float* const scores = buffers_.scores.data();
    multiply_rows(kernel_, scores_conv_, queries, padded_columns(a.channels),
                  {scores, key_outputs, rows, key_outputs}, nullptr);

    Bf16* const weights = buffers_.exponentials.data();
    float* const sums = buffers_.inverse_sums.data();
    exponentials({scores, key_outputs, rows, a.keys}, a.scale, weights, sums);

    const int width = a.heads * a.value_channels;
    float* const to =
        output_ +
        (image_ * static_cast<std::size_t>(a.queries) + static_cast<std::size_t>(first)) *
            static_cast<std::size_t>(width) +
        head_ * a.value_channels;
    const OutputRows made{to, width, rows, a.value_channels};
    multiply_rows(kernel_, result_conv_, weights, padded_columns(a.keys), made,
                  buffers_.result.data());
    scale_rows(made, sums);
  }

 private:
  /// A product with packed rows and no bias.
  [[nodiscard]] Conv conv_of(int inputs, int outputs, std::span<const Bf16> packed) const {
    Conv conv = matmul_conv(true, (inputs + 1) / 2 * 2, outputs);
    conv.float_bias = buffers_.zeros;
    conv.weights = {reinterpret_cast<const std::int8_t*>(packed.data()), packed.size_bytes()};
    return conv;
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

  const Attention& attention_;
  ConvKernel kernel_;
  const Attention::Inputs& inputs_;
  float* output_;
  Buffers buffers_;
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
  return parts_of(batch * static_cast<std::size_t>(heads) * blocks) * Buffers(*this, nullptr).bytes;
}

Status Attention::run(ConvKernel kernel, const Inputs& inputs, float* output,
                      std::span<std::uint8_t> memory, const Parallel& parallel,
                      const CancelToken* token) const {
  const auto blocks = static_cast<std::size_t>((queries + kBlockRows - 1) / kBlockRows);
  const std::size_t units = batch * static_cast<std::size_t>(heads) * blocks;
  const std::size_t bytes = Buffers(*this, nullptr).bytes;
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
