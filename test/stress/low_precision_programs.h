#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

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

/// Writes a well-formed program of random operations for an input of at least 4 x 4 pixels. Output
/// 0 is one plane; output 1 has the channels of the last map.
class ProgramGenerator {
 public:
  explicit ProgramGenerator(std::mt19937& random) : random_(random) {}

  ProgramData make(int operations) {
    const int input = add_value({0, 4, pick(0, 255), 1});
    operation(low_precision::Kind::kInput, {}, input, {constants({1.0F / 256})});
    int last = conv(input, pick(1, 4) * 16, false);
    for (int i = 0; i < operations; ++i) last = next(last);
    if (values_[at(last)].type != 0) last = combined(last);
    outward(low_precision::Kind::kSumOutput, last, 0, constants({0.01F, -1}));
    const auto channels = static_cast<std::size_t>(values_[at(last)].channels);
    outward(low_precision::Kind::kOutput, last, 1, constants(std::vector<float>(channels, 0.5F)));
    data_.code = {3, 2, static_cast<std::int64_t>(values_.size())};
    for (const Value& value : values_) {
      data_.code.insert(data_.code.end(), {value.type, value.channels, value.zero});
    }
    data_.code.insert(data_.code.end(), code_.begin(), code_.end());
    clear_unused_weights();
    return std::move(data_);
  }

 private:
  struct Value {
    int type;  // 0: quantised, 1: floats
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
  void outward(low_precision::Kind kind, int input, int number, std::int64_t constant) {
    operation(kind, {input}, number, {constant});
  }

  /// Of a quantised value: any shape that keeps its size, or halves it.
  int conv(int input, int channels, bool floats) {
    const Value from = values_[at(input)];
    const int kernel = std::vector<int>{1, 3, 3, 5}[at(pick(0, 3))];
    const int dilation = kernel > 1 && pick(0, 2) == 0 ? pick(2, 3) : 1;
    const int border = dilation * (kernel - 1) / 2;
    const int stride = pick(0, 5) == 0 ? 2 : 1;
    const bool wide = floats || pick(0, 4) == 0;
    const bool rows = dilation == 1 && kernel > 1;
    int first = 0;
    int count = from.channels;
    if (!rows && count > 4 && pick(0, 1) == 0) {  // some of the channels
      first = pick(0, count / 4 - 1) * 4;
      count = pick(1, (count - first) / 4) * 4;
    }
    const int row = (rows && count % low_precision::kChunkInputs != 0 ? kernel : 1) * count;
    const int across = rows && count % low_precision::kChunkInputs != 0 ? 1 : kernel;
    const int chunks =
        kernel * across * ((row + low_precision::kChunkInputs - 1) / low_precision::kChunkInputs);
    const std::size_t bytes = at(channels / low_precision::kLanes * (wide ? 2 : 1) * chunks) *
                              static_cast<std::size_t>(low_precision::kChunkBytes);
    const auto weights_at = static_cast<std::int64_t>(data_.weights.size());
    for (std::size_t i = 0; i < bytes; ++i) {
      data_.weights.push_back(static_cast<std::int8_t>(pick(-128, 127)));
    }
    const auto bias_at = static_cast<std::int64_t>(data_.ints.size());
    std::vector<float> scales;
    const float spread =
        0.3F / (wide ? 256.0F : 1.0F) / std::sqrt(static_cast<float>(count * kernel * kernel));
    for (int i = 0; i < channels; ++i) {
      data_.ints.push_back(pick(-30'000, 30'000));
      scales.push_back(spread * static_cast<float>(pick(50, 150)) / 100);
    }
    const int size = stride == 1 ? from.size : add_size();
    const int output = add_value({floats ? 1 : 0, channels, floats ? 0 : pick(0, 255), size});
    return operation(low_precision::Kind::kConv, {input}, output,
                     {first, count, kernel, kernel, stride, dilation, border, border, border,
                      border, wide ? 2 : 1, pick(0, 1), weights_at, bias_at, constants(scales)});
  }

  int combined(int floats) {
    const Value from = values_[at(floats)];
    const int output = add_value({0, from.channels, pick(0, 255), from.size});
    return operation(low_precision::Kind::kCombine, {floats}, output,
                     {pick(0, 1), constants({0.01F})});
  }

  int next(int last) {
    const Value from = values_[at(last)];
    if (from.type != 0) {
      switch (pick(0, 2)) {
        case 0:
          return combined(last);
        case 1: {
          const int output = add_value(from);
          return operation(low_precision::Kind::kCombine, {last, last}, output,
                           {1, constants({1})});
        }
        default: {
          const int halves = operation(low_precision::Kind::kSplitBytes, {last},
                                       add_value({0, 2 * from.channels, 0, from.size}), {});
          return conv(halves, 16, true);
        }
      }
    }
    switch (pick(0, 6)) {
      case 0: {
        const int output = add_value({0, from.channels, from.zero, add_size()});
        return operation(low_precision::Kind::kMaxPool, {last}, output, {pick(2, 3), 2, 1});
      }
      case 1: {
        const int output = add_value({0, from.channels, from.zero, add_size()});
        return operation(low_precision::Kind::kResize, {last}, output, {2});
      }
      case 2: {
        const int other = same_size(from, from.channels);
        const int output = add_value({0, from.channels, pick(0, 255), from.size});
        return operation(low_precision::Kind::kAdd, {last, other}, output,
                         {constants({0.5F, 0.5F, static_cast<float>(pick(-20, 20))})});
      }
      case 3: {
        if (from.channels > 96) return conv(last, 16, false);
        const int other = same_size(from, 0);
        const int channels = from.channels + values_[at(other)].channels;
        const int output = add_value({0, channels, from.zero, from.size});
        return operation(low_precision::Kind::kConcat, {last, other}, output, {});
      }
      case 4:
        return conv(last, pick(1, 3) * 16, true);
      default:
        return conv(last, pick(1, 6) * 16, false);
    }
  }

  /// A quantised value of the same size and zero point, of so many channels or of any.
  int same_size(const Value& like, int channels) {
    std::vector<int> found;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (value.type == 0 && value.size == like.size && value.zero == like.zero &&
          (channels == 0 || value.channels == channels)) {
        found.push_back(static_cast<int>(i));
      }
    }
    return found[at(pick(0, static_cast<int>(found.size()) - 1))];
  }

  int add_size() { return ++sizes_; }

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
  ProgramData data_;
  std::vector<Value> values_;
  std::vector<std::int64_t> code_;
  int sizes_ = 1;
};

/// A convolution kernel by definition, for every processor.
inline void conv_scalar(const low_precision::ConvTask& task, int first_row, int last_row,
                        int first_group, int last_group) {
  const low_precision::Conv& conv = *task.conv;
  const auto sum_of = [&](const std::uint8_t* window, const std::int8_t* panel, int lane) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < conv.chunks.size(); ++i) {
      for (int k = 0; k < conv.chunks[i].bytes; ++k) {
        const std::ptrdiff_t place = (k / 4 * low_precision::kLanes + lane) * 4 + k % 4;
        sum += window[task.offsets[i] + k] * panel[place];
      }
      panel += low_precision::kChunkBytes;
    }
    return sum;
  };
  for (int y = first_row; y < last_row; ++y) {
    for (int x = 0; x < task.output.width; ++x) {
      const std::uint8_t* const window = task.window(x, y);
      for (int channel = first_group * low_precision::kLanes;
           channel < last_group * low_precision::kLanes; ++channel) {
        const auto c = static_cast<std::size_t>(channel);
        const int lane = channel % low_precision::kLanes;
        const std::int8_t* const panel = task.weights(channel / low_precision::kLanes);
        float value = 0;
        if (conv.wide) {
          value = 256.0F * static_cast<float>(sum_of(window, panel, lane));
          value +=
              static_cast<float>(sum_of(window, panel + task.panel_bytes(), lane) + conv.bias[c]);
        } else {
          value = static_cast<float>(sum_of(window, panel, lane) + conv.bias[c]);
        }
        if (task.floats) {
          value *= conv.scales[c] * task.input_scale;
          task.output.floats_at(x, y)[c] = conv.relu ? std::max(value, 0.0F) : value;
        } else {
          value *= conv.scales[c];  // NaN becomes 0
          value = std::isnan(value) ? -1e6F : std::nearbyint(std::clamp(value, -1e6F, 1e6F));
          value = std::clamp(value + static_cast<float>(conv.zero), 0.0F, 255.0F);
          task.output.at(x, y)[channel] = static_cast<std::uint8_t>(value);
        }
      }
    }
  }
}

}  // namespace cutout::test
