#include "low_precision/maps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/simd.h"
#include "low_precision/bf16.h"

namespace cutout::low_precision {

namespace {

constexpr int kResizeBits = 10;  // of the weights of a resize

/// The neighbours of an output pixel of a resize on one axis and the weight of the second, in
/// 1024ths.
struct Neighbours {
  int first;
  int second;
  int weight;

  /// The weight as a fraction of 1.
  [[nodiscard]] float fraction() const {
    return static_cast<float>(weight) * (1.0F / (1 << kResizeBits));
  }
};

/// Returns the neighbours of the output pixel `at` of an enlargement at pixel centres, on a line of
/// `length` input pixels.
Neighbours neighbours(int at, int factor, int length) {
  // Centres: (at + 1/2) / factor - 1/2, in 1024ths. factor is a power of two: exact up to 512.
  const int place = ((2 * at + 1) << kResizeBits) / (2 * factor) - (1 << (kResizeBits - 1));
  const int inside = std::clamp(place, 0, (length - 1) << kResizeBits);
  const int first = inside >> kResizeBits;
  return {first, std::min(first + 1, length - 1), inside & ((1 << kResizeBits) - 1)};
}

/// 0 for NaN: the order of the arguments decides.
CUTOUT_INLINE std::uint8_t cut_off(float value) {
  return static_cast<std::uint8_t>(std::min(std::max(0.0F, value), 255.0F));
}

/// Adding and taking away 1.5 * 2^23 rounds to the nearest whole number, to even, in every version
/// of a loop; for magnitudes below 2^22.
CUTOUT_INLINE float rounded(float value) {
  constexpr float kLimit = 4e6F;
  constexpr float kShift = 12582912.0F;
  const float bounded = std::min(std::max(value, -kLimit), kLimit);
  return (bounded + kShift) - kShift;
}

/// cut_off(rounded(value)), in the form that GCC vectorises for AVX2 too: what is too large for
/// `rounded` stays too large when it is shifted.
CUTOUT_INLINE std::uint8_t cut_off_rounded(float value) {
  constexpr float kShift = 12582912.0F;
  return cut_off((value + kShift) - kShift);
}

CUTOUT_SIMD void quantise_row(const float* values, float scale, float zero, std::ptrdiff_t stride,
                              int count, std::uint8_t* output) {
  for (int x = 0; x < count; ++x) {
    output[x * stride] = cut_off(rounded(values[x] / scale) + zero);
  }
}

CUTOUT_SIMD void round_row(const float* values, std::ptrdiff_t stride, int count, Bf16* output) {
  for (int x = 0; x < count; ++x) output[x * stride] = bf16_of(values[x]);
}

CUTOUT_SIMD void max_into(const std::uint8_t* values, int count, std::uint8_t* most) {
  for (int i = 0; i < count; ++i) most[i] = std::max(most[i], values[i]);
}

CUTOUT_SIMD void max_into(const Bf16* values, int count, Bf16* most) {
  for (int i = 0; i < count; ++i) {
    const std::int16_t value = std::max(ordered(most[i]), ordered(values[i]));
    most[i] = static_cast<Bf16>(ordered(static_cast<Bf16>(value)));
  }
}

/// The four neighbours of a row of outputs of a resize.
struct ResizeRow {
  const std::uint8_t* upper;
  const std::uint8_t* lower;
  std::ptrdiff_t stride;  // between pixels
  int width;              // of the input
  int y_weight;           // of the lower one
};

/// The sum of four times kCount values by their weights, in 2^-bits. The number is known and the
/// output lies apart, so that the loop is vectorised without checks.
template <int kCount, typename Number>
CUTOUT_INLINE void blend(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                         const std::uint8_t* d, const std::array<Number, 4>& weights, int bits,
                         std::uint8_t* __restrict output) {
  for (int i = 0; i < kCount; ++i) {
    const auto sum = static_cast<Number>(weights[0] * a[i] + weights[1] * b[i] + weights[2] * c[i] +
                                         weights[3] * d[i]);
    output[i] = static_cast<std::uint8_t>(sum >> bits);
  }
}

/// One row of a resize. A `Number` holds the sum of four values by their weights, which are
/// products of two in 2^-bits.
template <typename Number>
CUTOUT_INLINE void resize_row_in(const ResizeRow& row, int factor, int bits, int width,
                                 int channels, std::uint8_t* output, std::ptrdiff_t stride) {
  constexpr int kWide = 64;
  const int one = 1 << bits;
  const int y_weight = row.y_weight >> (kResizeBits - bits);
  for (int x = 0; x < width; ++x, output += stride) {
    const Neighbours u = neighbours(x, factor, row.width);
    const int x_weight = u.weight >> (kResizeBits - bits);
    const std::array<Number, 4> weights{
        static_cast<Number>((one - x_weight) * (one - y_weight)),
        static_cast<Number>(x_weight * (one - y_weight)),
        static_cast<Number>((one - x_weight) * y_weight),
        static_cast<Number>(x_weight * y_weight),
    };
    const std::uint8_t* const a = row.upper + u.first * row.stride;
    const std::uint8_t* const b = row.upper + u.second * row.stride;
    const std::uint8_t* const c = row.lower + u.first * row.stride;
    const std::uint8_t* const d = row.lower + u.second * row.stride;
    // Most maps have whole blocks.
    int i = 0;
    for (; i + kWide <= channels; i += kWide) {
      blend<kWide>(a + i, b + i, c + i, d + i, weights, 2 * bits, output + i);
    }
    for (; i + kLanes <= channels; i += kLanes) {
      blend<kLanes>(a + i, b + i, c + i, d + i, weights, 2 * bits, output + i);
    }
    for (; i < channels; ++i) blend<1>(a + i, b + i, c + i, d + i, weights, 2 * bits, output + i);
  }
}

/// Enlarging 8 times or less, all weights are multiples of a 16th: sums of 16 bits.
CUTOUT_SIMD void resize_row(const ResizeRow& row, int factor, int width, int channels,
                            std::uint8_t* output, std::ptrdiff_t stride) {
  constexpr int kBits = 4;
  if (factor <= (1 << (kBits - 1))) {
    resize_row_in<std::uint16_t>(row, factor, kBits, width, channels, output, stride);
  } else {
    resize_row_in<std::uint32_t>(row, factor, kResizeBits, width, channels, output, stride);
  }
}

CUTOUT_SIMD void add_row(const std::uint8_t* a, const std::uint8_t* b, Add scales, int count,
                         std::uint8_t* output) {
  for (int i = 0; i < count; ++i) {
    const float sum = static_cast<float>(a[i]) * scales.first +
                      (static_cast<float>(b[i]) * scales.second + scales.offset);
    output[i] = cut_off_rounded(sum);
  }
}

CUTOUT_SIMD void interpolate(const float* a, const float* b, const float* c, const float* d,
                             float x_weight, float y_weight, int count, float* output) {
  for (int i = 0; i < count; ++i) {
    const float upper = a[i] * (1 - x_weight) + b[i] * x_weight;
    const float lower = c[i] * (1 - x_weight) + d[i] * x_weight;
    output[i] = upper * (1 - y_weight) + lower * y_weight;
  }
}

CUTOUT_SIMD void interpolate(const Bf16* a, const Bf16* b, const Bf16* c, const Bf16* d,
                             float x_weight, float y_weight, int count, Bf16* output) {
  for (int i = 0; i < count; ++i) {
    const float upper = float_of(a[i]) * (1 - x_weight) + float_of(b[i]) * x_weight;
    const float lower = float_of(c[i]) * (1 - x_weight) + float_of(d[i]) * x_weight;
    output[i] = bf16_of(upper * (1 - y_weight) + lower * y_weight);
  }
}

CUTOUT_SIMD float largest_of(const float* values, int count, float most) {
  for (int i = 0; i < count; ++i) most = std::max(most, values[i]);
  return most;
}

CUTOUT_SIMD void split_row(const float* values, float inverse, int count, std::uint8_t* high,
                           std::uint8_t* low) {
  for (int i = 0; i < count; ++i) {
    const float bounded = std::min(std::max(0.0F, values[i] * inverse), 65535.0F);
    const int units = static_cast<int>(rounded(bounded));
    high[i] = static_cast<std::uint8_t>(units >> 8);
    low[i] = static_cast<std::uint8_t>(units & 255);
  }
}

CUTOUT_SIMD void add_to(const float* values, int count, float* sums) {
  for (int i = 0; i < count; ++i) sums[i] += values[i];
}

CUTOUT_SIMD void add_to(const Bf16* values, int count, float* sums) {
  for (int i = 0; i < count; ++i) sums[i] += float_of(values[i]);
}

CUTOUT_SIMD void add_two(const Bf16* a, const Bf16* b, float lower_bound, int count, Bf16* output) {
  for (int i = 0; i < count; ++i) {
    output[i] = bf16_of(std::max(float_of(a[i]) + float_of(b[i]), lower_bound));
  }
}

CUTOUT_SIMD void at_least(float least, int count, float* values) {
  for (int i = 0; i < count; ++i) values[i] = std::max(values[i], least);
}

CUTOUT_SIMD int sum_of(const std::uint8_t* values, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total += values[i];
  return total;
}

/// Returns where the values of row `y` of a plane begin, in planes of the map's size.
std::ptrdiff_t row_in_planes(const Map& map, int plane, int y) {
  return (std::ptrdiff_t{plane} * map.height + y) * map.width;
}

/// `round_row(values, stride, count, output)` writes a row of one channel.
template <typename Number, typename RoundRow>
void read_rows(std::span<const float> planes, int channels, const Map& output, int first, int last,
               const RoundRow& round_row) {
  const std::ptrdiff_t stride = output.stride / static_cast<std::ptrdiff_t>(sizeof(Number));
  for (int y = first; y < last; ++y) {
    auto* const row = output.at<Number>(0, y);
    for (int c = 0; c < channels; ++c) {
      round_row(planes.data() + row_in_planes(output, c, y), stride, output.width, row + c);
    }
    for (int c = channels; c < output.channels; ++c) {
      for (int x = 0; x < output.width; ++x) {
        row[x * stride + c] = static_cast<Number>(output.zero);
      }
    }
  }
}

template <typename Number>
void pool_rows(const MaxPool& pool, const Map& input, const Map& output, int first, int last) {
  const auto bytes = static_cast<std::size_t>(output.bytes());
  for (int y = first; y < last; ++y) {
    const int top = y * pool.stride;
    const int bottom = std::min(top + pool.kernel, input.height);
    for (int x = 0; x < output.width; ++x) {
      const int left = x * pool.stride;
      const int right = std::min(left + pool.kernel, input.width);
      auto* const most = output.at<Number>(x, y);
      std::memcpy(most, input.at(left, top), bytes);
      for (int v = top; v < bottom; ++v) {
        for (int u = v == top ? left + 1 : left; u < right; ++u) {
          max_into(input.at<const Number>(u, v), output.channels, most);
        }
      }
    }
  }
}

template <typename Number>
void interpolate_rows(int factor, const Map& input, const Map& output, int first, int last) {
  for (int y = first; y < last; ++y) {
    const Neighbours v = neighbours(y, factor, input.height);
    for (int x = 0; x < output.width; ++x) {
      const Neighbours u = neighbours(x, factor, input.width);
      interpolate(input.at<Number>(u.first, v.first), input.at<Number>(u.second, v.first),
                  input.at<Number>(u.first, v.second), input.at<Number>(u.second, v.second),
                  u.fraction(), v.fraction(), output.channels, output.at<Number>(x, y));
    }
  }
}

/// Sums of `Number`s, some channels of a pixel at a time, which `store(sums, count, x, y, c)`
/// takes.
template <typename Number, typename Store>
void combine_rows(std::span<const Map> inputs, bool relu, const Map& output, int first, int last,
                  const Store& store) {
  constexpr int kBlock = 64;
  std::array<float, kBlock> sums;
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < output.width; ++x) {
      for (int c = 0; c < output.channels; c += kBlock) {
        const int count = std::min(kBlock, output.channels - c);
        // The sum of one float map is that map, zeros of both signs included.
        sums.fill(std::is_same_v<Number, Bf16> ? 0.0F : -0.0F);
        for (const Map& input : inputs) {
          add_to(input.at<const Number>(x, y) + c, count, sums.data());
        }
        if (relu) at_least(0, count, sums.data());
        store(sums.data(), count, x, y, c);
      }
    }
  }
}

/// `float_in(c)` makes floats of the numbers of a channel.
template <typename Number, typename FloatIn>
void write_rows(const Map& input, int channels, std::span<float> planes, int first, int last,
                const FloatIn& float_in) {
  const std::ptrdiff_t stride = input.stride / static_cast<std::ptrdiff_t>(sizeof(Number));
  for (int y = first; y < last; ++y) {
    const auto* const values = input.at<const Number>(0, y);
    for (int c = 0; c < channels; ++c) {
      float* const to = planes.data() + row_in_planes(input, c, y);
      const auto float_of_number = float_in(c);
      for (int x = 0; x < input.width; ++x) to[x] = float_of_number(values[x * stride + c]);
    }
  }
}

}  // namespace

void read_planes(std::span<const float> planes, int channels, float scale, const Map& output,
                 int first, int last) {
  if (output.type == Type::kBf16) {
    read_rows<Bf16>(planes, channels, output, first, last, round_row);
    return;
  }
  read_rows<std::uint8_t>(
      planes, channels, output, first, last,
      [&](const float* values, std::ptrdiff_t stride, int count, std::uint8_t* to) {
        quantise_row(values, scale, static_cast<float>(output.zero), stride, count, to);
      });
}

void max_pool(const MaxPool& pool, const Map& input, const Map& output, int first, int last) {
  const auto& rows = output.type == Type::kBf16 ? pool_rows<Bf16> : pool_rows<std::uint8_t>;
  rows(pool, input, output, first, last);
}

void resize(int factor, const Map& input, const Map& output, int first, int last) {
  if (output.type == Type::kFloats) {
    return interpolate_rows<float>(factor, input, output, first, last);
  }
  if (output.type == Type::kBf16) {
    return interpolate_rows<Bf16>(factor, input, output, first, last);
  }
  for (int y = first; y < last; ++y) {
    const Neighbours v = neighbours(y, factor, input.height);
    const ResizeRow row{input.at(0, v.first), input.at(0, v.second), input.stride, input.width,
                        v.weight};
    resize_row(row, factor, output.width, output.channels, output.at(0, y), output.stride);
  }
}

float max_value(const Map& input) {
  float most = 0;
  for (int y = 0; y < input.height; ++y) {
    for (int x = 0; x < input.width; ++x) {
      most = largest_of(input.at<float>(x, y), input.channels, most);
    }
  }
  return most;
}

void split_bytes(const Map& input, float unit, const Map& output, int first, int last) {
  const float inverse = unit > 0 ? 1 / unit : 0;
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < input.width; ++x) {
      std::uint8_t* const high = output.at(x, y);
      split_row(input.at<float>(x, y), inverse, input.channels, high, high + input.channels);
    }
  }
}

void combine(std::span<const Map> inputs, bool relu, float scale, const Map& output, int first,
             int last) {
  if (output.type == Type::kFloats) {
    combine_rows<float>(inputs, relu, output, first, last,
                        [&](const float* sums, int count, int x, int y, int c) {
                          std::copy_n(sums, count, output.at<float>(x, y) + c);
                        });
  } else if (output.type == Type::kQuantised) {
    combine_rows<float>(
        inputs, relu, output, first, last, [&](const float* sums, int count, int x, int y, int c) {
          quantise_row(sums, scale, static_cast<float>(output.zero), 1, count, output.at(x, y) + c);
        });
  } else if (inputs.size() != 2) {
    combine_rows<Bf16>(inputs, relu, output, first, last,
                       [&](const float* sums, int count, int x, int y, int c) {
                         round_row(sums, 1, count, output.at<Bf16>(x, y) + c);
                       });
  } else {
    const float lower_bound = relu ? 0.0F : -std::numeric_limits<float>::infinity();
    for (int y = first; y < last; ++y) {
      for (int x = 0; x < output.width; ++x) {
        add_two(inputs[0].at<Bf16>(x, y), inputs[1].at<Bf16>(x, y), lower_bound, output.channels,
                output.at<Bf16>(x, y));
      }
    }
  }
}

void add(const Add& add, const Map& a, const Map& b, const Map& output, int first, int last) {
  const auto alone = [](const Map& map) { return map.stride == map.bytes(); };
  if (alone(a) && alone(b) && alone(output)) {
    for (int y = first; y < last; ++y) {
      add_row(a.at(0, y), b.at(0, y), add, output.width * output.channels, output.at(0, y));
    }
    return;
  }
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < output.width; ++x) {
      add_row(a.at(x, y), b.at(x, y), add, output.channels, output.at(x, y));
    }
  }
}

void copy(const Map& input, const Map& output, int before, int first, int last) {
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < input.width; ++x) {
      std::memcpy(output.at(x, y) + before, input.at(x, y),
                  static_cast<std::size_t>(input.bytes()));
    }
  }
}

void write_planes(const Map& input, int channels, std::span<const float> scales,
                  std::span<float> planes, int first, int last) {
  if (input.type == Type::kFloats) {
    write_rows<float>(input, channels, planes, first, last,
                      [](int) { return [](float value) { return value; }; });
  } else if (input.type == Type::kBf16) {
    write_rows<Bf16>(input, channels, planes, first, last,
                     [](int) { return [](Bf16 value) { return float_of(value); }; });
  } else {
    write_rows<std::uint8_t>(input, channels, planes, first, last, [&](int c) {
      const float scale = scales[static_cast<std::size_t>(c)];
      return [zero = input.zero, scale](int value) {
        return static_cast<float>(value - zero) * scale;
      };
    });
  }
}

void sum(const Map& input, float scale, float low, std::span<float> plane, int first, int last) {
  for (int y = first; y < last; ++y) {
    float* const values = plane.data() + row_in_planes(input, 0, y);
    for (int x = 0; x < input.width; ++x) {
      values[x] = static_cast<float>(sum_of(input.at(x, y), input.channels)) * scale + low;
    }
  }
}

void fill_border(const Map& map, int border) {
  std::memset(map.at(-border, map.height + border), map.zero, kChunkInputs);
  if (border == 0) return;
  const auto line = static_cast<std::size_t>(map.pitch);
  const auto sides = static_cast<std::size_t>(border * map.stride);
  for (int y = -border; y < map.height + border; ++y) {
    std::uint8_t* const row = map.at(-border, y);
    if (y < 0 || y >= map.height) {
      std::memset(row, map.zero, line);
      continue;
    }
    std::memset(row, map.zero, sides);
    std::memset(map.at(map.width, y), map.zero, sides);
  }
}

}  // namespace cutout::low_precision
