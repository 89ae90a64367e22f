#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "low_precision/bf16.h"
#include "low_precision/conv.h"
#include "low_precision/program.h"

/// Random programs for native/low_precision, and its convolutions by definition.
namespace cutout::test {

/// What low_precision::Program::read takes.
struct ProgramData {
  std::vector<std::int64_t> code;
  std::vector<float> floats;
  std::vector<std::int32_t> ints;
  std::vector<std::int8_t> weights;

  Status read(low_precision::Program& program) const {
    return low_precision::Program::read(code, floats, ints, weights, program);
  }
};

/// Writes programs operation by operation.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::mt19937& random) : random_(random) {}

 protected:
  struct Value {
    low_precision::Type type;
    int channels;
    int zero;
    int size;  // values of one size have the same width and height
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  int add_value(const Value& value) {
    values_.push_back(value);
    return static_cast<int>(values_.size()) - 1;
  }
  [[nodiscard]] const Value& value(int index) const { return values_[at(index)]; }
  int add_size() { return ++sizes_; }
  std::int64_t constants(const std::vector<float>& given) {
    data_.floats.insert(data_.floats.end(), given.begin(), given.end());
    return static_cast<std::int64_t>(data_.floats.size() - given.size());
  }
  int operation(low_precision::Kind kind, const std::vector<int>& inputs, int output,
                const std::vector<std::int64_t>& rest) {
    code_.insert(code_.end(),
                 {static_cast<std::int64_t>(kind), static_cast<std::int64_t>(inputs.size())});
    code_.insert(code_.end(), inputs.begin(), inputs.end());
    code_.push_back(output);
    code_.insert(code_.end(), rest.begin(), rest.end());
    return output;
  }

  /// The window of a convolution that keeps its input's size, or halves it.
  struct Window {
    int kernel;
    int dilation;
    int border;
    int stride;

    [[nodiscard]] bool rows() const { return dilation == 1 && kernel > 1; }
    /// Chunks of weights of one panel, of so many bytes a pixel.
    [[nodiscard]] int chunks(int bytes) const {
      const bool by_rows = rows() && bytes % low_precision::kChunkInputs != 0;
      const int row = (by_rows ? kernel : 1) * bytes;
      const int across = by_rows ? 1 : kernel;
      return kernel * across *
             ((row + low_precision::kChunkInputs - 1) / low_precision::kChunkInputs);
    }
  };
  Window pick_window() {
    const int kernel = std::vector<int>{1, 3, 3, 5}[at(pick(0, 3))];
    const int dilation = kernel > 1 && pick(0, 2) == 0 ? pick(2, 3) : 1;
    return {kernel, dilation, dilation * (kernel - 1) / 2, pick(0, 5) == 0 ? 2 : 1};
  }
  int size_after(const Window& window, int size) { return window.stride == 1 ? size : add_size(); }

  /// A value of the same type, size and zero point, of so many channels or of any.
  int same_size(const Value& like, int channels) {
    std::vector<int> found;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (value.type == like.type && value.size == like.size && value.zero == like.zero &&
          (channels == 0 || value.channels == channels)) {
        found.push_back(static_cast<int>(i));
      }
    }
    return found[at(pick(0, static_cast<int>(found.size()) - 1))];
  }

  /// The program for an image of 3 channels.
  ProgramData finished(int outputs) {
    data_.code = {3, outputs, static_cast<std::int64_t>(values_.size())};
    for (const Value& value : values_) {
      data_.code.insert(data_.code.end(),
                        {static_cast<std::int64_t>(value.type), value.channels, value.zero});
    }
    data_.code.insert(data_.code.end(), code_.begin(), code_.end());
    clear_unused_weights();
    return std::move(data_);
  }

  ProgramData data_;

 private:
  /// A kernel may multiply what lies behind a chunk's inputs: the weights there are 0.
  void clear_unused_weights() {
    low_precision::Program program;
    if (!data_.read(program).ok()) return;
    for (const low_precision::Operation& each : program.operations()) {
      if (each.kind != low_precision::Kind::kConv) continue;
      const low_precision::Conv& conv = each.conv;
      auto place = static_cast<std::size_t>(conv.weights.data() - data_.weights.data());
      for (int panel = 0; panel < conv.groups() * conv.panels(); ++panel) {
        for (const low_precision::Chunk& chunk : conv.chunks) {
          const auto used = static_cast<std::ptrdiff_t>(chunk.bytes) * low_precision::kLanes;
          const auto begin = data_.weights.begin() + static_cast<std::ptrdiff_t>(place);
          std::fill(begin + used, begin + low_precision::kChunkBytes, std::int8_t{0});
          place += low_precision::kChunkBytes;
        }
      }
    }
  }

  std::mt19937& random_;
  std::vector<Value> values_;
  std::vector<std::int64_t> code_;
  int sizes_ = 1;
};

/// A well-formed program in 8 bits of random operations for an input of at least 4 x 4 pixels.
/// Output 0 is one plane; output 1 has the channels of the last map.
class ProgramGenerator : ProgramBuilder {
 public:
  using ProgramBuilder::ProgramBuilder;

  ProgramData make(int operations) {
    const int input = add_value({kQuantised, 4, pick(0, 255), 1});
    operation(low_precision::Kind::kInput, {}, input, {constants({1.0F / 256})});
    int last = conv(input, pick(1, 4) * 16, false);
    for (int i = 0; i < operations; ++i) last = next(last);
    if (value(last).type != kQuantised) last = combined(last);
    operation(low_precision::Kind::kSumOutput, {last}, 0, {constants({0.01F, -1})});
    const auto channels = static_cast<std::size_t>(value(last).channels);
    operation(low_precision::Kind::kOutput, {last}, 1,
              {constants(std::vector<float>(channels, 0.5F))});
    return finished(2);
  }

 private:
  static constexpr auto kQuantised = low_precision::Type::kQuantised;
  static constexpr auto kFloats = low_precision::Type::kFloats;

  /// Of a quantised value.
  int conv(int input, int channels, bool floats) {
    const Value from = value(input);
    const Window window = pick_window();
    const bool int16_weights = floats || pick(0, 4) == 0;
    int first = 0;
    int count = from.channels;
    if (!window.rows() && count > 4 && pick(0, 1) == 0) {  // some of the channels
      first = pick(0, count / 4 - 1) * 4;
      count = pick(1, (count - first) / 4) * 4;
    }
    const std::size_t bytes =
        at(channels / low_precision::kLanes * (int16_weights ? 2 : 1) * window.chunks(count)) *
        static_cast<std::size_t>(low_precision::kChunkBytes);
    const auto weights_at = static_cast<std::int64_t>(data_.weights.size());
    for (std::size_t i = 0; i < bytes; ++i) {
      data_.weights.push_back(static_cast<std::int8_t>(pick(-128, 127)));
    }
    const auto bias_at = static_cast<std::int64_t>(data_.ints.size());
    std::vector<float> scales;
    const float spread = 0.3F / (int16_weights ? 256.0F : 1.0F) /
                         std::sqrt(static_cast<float>(count * window.kernel * window.kernel));
    for (int i = 0; i < channels; ++i) {
      data_.ints.push_back(pick(-30'000, 30'000));
      scales.push_back(spread * static_cast<float>(pick(50, 150)) / 100);
    }
    const int size = size_after(window, from.size);
    const int output =
        add_value({floats ? kFloats : kQuantised, channels, floats ? 0 : pick(0, 255), size});
    return operation(low_precision::Kind::kConv, {input}, output,
                     {first, count, window.kernel, window.kernel, window.stride, window.dilation,
                      window.border, window.border, window.border, window.border,
                      int16_weights ? 2 : 1, pick(0, 1), weights_at, bias_at, constants(scales)});
  }

  int combined(int floats) {
    const Value from = value(floats);
    const int output = add_value({kQuantised, from.channels, pick(0, 255), from.size});
    return operation(low_precision::Kind::kCombine, {floats}, output,
                     {pick(0, 1), constants({0.01F})});
  }

  int next(int last) {
    const Value from = value(last);
    if (from.type != kQuantised) {
      switch (pick(0, 2)) {
        case 0:
          return combined(last);
        case 1: {
          const int output = add_value(from);
          return operation(low_precision::Kind::kCombine, {last, last}, output,
                           {1, constants({1})});
        }
        default: {
          const int halves =
              operation(low_precision::Kind::kSplitBytes, {last},
                        add_value({kQuantised, 2 * from.channels, 0, from.size}), {});
          return conv(halves, 16, true);
        }
      }
    }
    switch (pick(0, 6)) {
      case 0: {
        const int output = add_value({kQuantised, from.channels, from.zero, add_size()});
        return operation(low_precision::Kind::kMaxPool, {last}, output, {pick(2, 3), 2, 1});
      }
      case 1: {
        const int output = add_value({kQuantised, from.channels, from.zero, add_size()});
        return operation(low_precision::Kind::kResize, {last}, output, {2});
      }
      case 2: {
        const int other = same_size(from, from.channels);
        const int output = add_value({kQuantised, from.channels, pick(0, 255), from.size});
        return operation(low_precision::Kind::kAdd, {last, other}, output,
                         {constants({0.5F, 0.5F, static_cast<float>(pick(-20, 20))})});
      }
      case 3: {
        if (from.channels > 96) return conv(last, 16, false);
        const int other = same_size(from, 0);
        const int channels = from.channels + value(other).channels;
        const int output = add_value({kQuantised, channels, from.zero, from.size});
        return operation(low_precision::Kind::kConcat, {last, other}, output, {});
      }
      case 4:
        return conv(last, pick(1, 3) * 16, true);
      default:
        return conv(last, pick(1, 6) * 16, false);
    }
  }
};

/// Likewise in bf16, of numbers whose products and sums are exact, so that their order does not
/// matter: inputs are multiples of 1/256, weights 0 or +-1, and `bits` bounds how many bits of a
/// number a float has to hold.
class Bf16ProgramGenerator : ProgramBuilder {
 public:
  using ProgramBuilder::ProgramBuilder;

  ProgramData make(int operations) {
    const int input = add_value({kBf16, 4, 0, 1});
    operation(low_precision::Kind::kInput, {}, input, {});
    bits_ = 8;
    int last = conv(input, pick(1, 4) * 16, kBf16);
    for (int i = 0; i < operations; ++i) last = next(last);
    const int floats = conv(last, 16, kFloats);
    operation(low_precision::Kind::kPlanes, {floats}, 0, {1});
    operation(low_precision::Kind::kPlanes, {last}, 1, {value(last).channels});
    return finished(2);
  }

 private:
  static constexpr auto kBf16 = low_precision::Type::kBf16;
  static constexpr auto kFloats = low_precision::Type::kFloats;
  /// A float has 24; the last convolution needs some.
  static constexpr int kMaxBits = 24;
  static constexpr int kConvBits = 2;
  static constexpr int kResizeBits = 4;

  void weights(const Window& window, int channels, int bytes) {
    const auto begin = static_cast<std::ptrdiff_t>(data_.weights.size());
    const int panel = window.chunks(bytes) * low_precision::kChunkBytes;
    const int panels = channels / low_precision::kLanes;
    data_.weights.resize(data_.weights.size() + at(panels * panel), 0);
    // Three of every channel. What clear_unused_weights removes of them makes sums smaller only.
    for (int channel = 0; channel < channels; ++channel) {
      for (int i = 0; i < 3; ++i) {
        const int group = pick(0, panel / (4 * low_precision::kLanes) - 1);
        const int place = channel / low_precision::kLanes * panel +
                          (group * low_precision::kLanes + channel % low_precision::kLanes) * 4 +
                          2 * pick(0, 1);
        const low_precision::Bf16 weight = low_precision::bf16_of(pick(0, 1) == 0 ? 1.0F : -1.0F);
        std::memcpy(&data_.weights[static_cast<std::size_t>(begin + place)], &weight,
                    sizeof(weight));
      }
    }
  }

  int conv(int input, int channels, low_precision::Type type) {
    const Value from = value(input);
    const Window window = pick_window();
    const auto weights_at = static_cast<std::int64_t>(data_.weights.size());
    weights(window, channels, 2 * from.channels);
    std::vector<float> bias;
    for (int i = 0; i < channels; ++i) bias.push_back(static_cast<float>(pick(-128, 127)) / 256);
    bits_ += kConvBits;
    const int output = add_value({type, channels, 0, size_after(window, from.size)});
    return operation(low_precision::Kind::kConv, {input}, output,
                     {0, from.channels, window.kernel, window.kernel, window.stride,
                      window.dilation, window.border, window.border, window.border, window.border,
                      1, pick(0, 1), weights_at, constants(bias)});
  }

  int next(int last) {
    const Value from = value(last);
    const int left = kMaxBits - kConvBits - bits_;
    switch (left >= kConvBits ? pick(left >= kResizeBits ? 0 : 1, 5) : pick(2, 3)) {
      case 0:
        bits_ += kResizeBits;
        return operation(low_precision::Kind::kResize, {last},
                         add_value({kBf16, from.channels, 0, add_size()}), {2});
      case 1: {
        bits_ += 1;
        const int other = same_size(from, from.channels);
        return operation(low_precision::Kind::kCombine, {last, other},
                         add_value({kBf16, from.channels, 0, from.size}),
                         {pick(0, 1), constants({1})});
      }
      case 2: {
        if (from.channels > 96) break;
        const int other = same_size(from, 0);
        return operation(low_precision::Kind::kConcat, {last, other},
                         add_value({kBf16, from.channels + value(other).channels, 0, from.size}),
                         {});
      }
      case 3:
        break;
      default:
        return conv(last, pick(1, 5) * 16, kBf16);
    }
    return operation(low_precision::Kind::kMaxPool, {last},
                     add_value({kBf16, from.channels, 0, add_size()}), {pick(2, 3), 2, 1});
  }

  int bits_ = 0;
};

/// Stores what a convolution in 8 bits gives of sums, `high` being 0 where weights have 8 bits.
inline void finish_int8(const low_precision::ConvTask& task, int channel, std::int32_t high,
                        std::int32_t low, std::uint8_t* pixel) {
  const low_precision::Conv& conv = *task.conv;
  const auto c = static_cast<std::size_t>(channel);
  float value = static_cast<float>(low + conv.bias[c]);
  if (conv.int16_weights) value = 256.0F * static_cast<float>(high) + value;
  if (task.floats) {
    value *= conv.scales[c] * task.input_scale;
    reinterpret_cast<float*>(pixel)[c] = conv.relu ? std::max(value, 0.0F) : value;
    return;
  }
  value *= conv.scales[c];  // NaN becomes 0
  value = std::isnan(value) ? -1e6F : std::nearbyint(std::clamp(value, -1e6F, 1e6F));
  value = std::clamp(value + static_cast<float>(conv.zero), 0.0F, 255.0F);
  pixel[c] = static_cast<std::uint8_t>(value);
}

/// Likewise of one in bf16.
inline void finish_bf16(const low_precision::ConvTask& task, int channel, float sum,
                        std::uint8_t* pixel) {
  const low_precision::Conv& conv = *task.conv;
  const auto c = static_cast<std::size_t>(channel);
  const float biased = sum + conv.float_bias[c];
  const float value = conv.relu ? std::max(biased, 0.0F) : biased;
  if (task.floats) {
    reinterpret_cast<float*>(pixel)[c] = value;
  } else {
    reinterpret_cast<low_precision::Bf16*>(pixel)[c] = low_precision::bf16_of(value);
  }
}

inline std::int32_t sum_int8(const low_precision::ConvTask& task, const std::uint8_t* window,
                             const std::int8_t* panel, int lane) {
  const low_precision::Conv& conv = *task.conv;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < conv.chunks.size(); ++i, panel += low_precision::kChunkBytes) {
    for (int k = 0; k < conv.chunks[i].bytes; ++k) {
      const std::ptrdiff_t place = (k / 4 * low_precision::kLanes + lane) * 4 + k % 4;
      sum += window[task.offsets[i] + k] * panel[place];
    }
  }
  return sum;
}

inline float sum_bf16(const low_precision::ConvTask& task, const std::uint8_t* window,
                      const std::int8_t* panel, int lane) {
  const low_precision::Conv& conv = *task.conv;
  float sum = 0;
  for (std::size_t i = 0; i < conv.chunks.size(); ++i, panel += low_precision::kChunkBytes) {
    for (int k = 0; k < conv.chunks[i].bytes; k += 2) {
      const std::ptrdiff_t place = (k / 4 * low_precision::kLanes + lane) * 4 + k % 4;
      low_precision::Bf16 input = 0;
      low_precision::Bf16 weight = 0;
      std::memcpy(&input, window + task.offsets[i] + k, sizeof(input));
      std::memcpy(&weight, panel + place, sizeof(weight));
      sum += low_precision::float_of(input) * low_precision::float_of(weight);
    }
  }
  return sum;
}

/// A convolution kernel by definition, of both kinds of programs, for every processor.
inline void conv_scalar(const low_precision::ConvTask& task, int first_row, int last_row,
                        int first_group, int last_group) {
  for (int y = first_row; y < last_row; ++y) {
    for (int x = 0; x < task.output.width; ++x) {
      const std::uint8_t* const window = task.window(x, y);
      std::uint8_t* const pixel = task.output.at(x, y);
      for (int channel = first_group * low_precision::kLanes;
           channel < last_group * low_precision::kLanes; ++channel) {
        const int lane = channel % low_precision::kLanes;
        const std::int8_t* const panel = task.weights(channel / low_precision::kLanes);
        if (task.conv->bf16) {
          finish_bf16(task, channel, sum_bf16(task, window, panel, lane), pixel);
          continue;
        }
        const bool int16_weights = task.conv->int16_weights;
        const std::int32_t high = int16_weights ? sum_int8(task, window, panel, lane) : 0;
        const std::int8_t* const low = int16_weights ? panel + task.panel_bytes() : panel;
        finish_int8(task, channel, high, sum_int8(task, window, low, lane), pixel);
      }
    }
  }
}

}  // namespace cutout::test
