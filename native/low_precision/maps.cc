#include "low_precision/maps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/simd.h"
#include "low_precision/max_pool.h"
#include "low_precision/neighbours.h"

namespace cutout::low_precision {

namespace {

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

CUTOUT_SIMD void max_into(const std::uint8_t* values, int count, std::uint8_t* most) {
  for (int i = 0; i < count; ++i) most[i] = std::max(most[i], values[i]);
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

CUTOUT_SIMD void blend_floats(const float* a, const float* b, const float* c, const float* d,
                              float x_weight, float y_weight, int count, float* output) {
  for (int i = 0; i < count; ++i) {
    const float upper = a[i] * (1 - x_weight) + b[i] * x_weight;
    const float lower = c[i] * (1 - x_weight) + d[i] * x_weight;
    output[i] = upper * (1 - y_weight) + lower * y_weight;
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

CUTOUT_SIMD void add_floats(const float* values, int count, float* sums) {
  for (int i = 0; i < count; ++i) sums[i] += values[i];
}

CUTOUT_SIMD void at_least(float least, int count, float* values) {
  for (int i = 0; i < count; ++i) values[i] = std::max(values[i], least);
}

CUTOUT_SIMD void quantise_values(const float* values, float scale, float zero, int count,
                                 std::uint8_t* output) {
  for (int i = 0; i < count; ++i) output[i] = cut_off(rounded(values[i] / scale) + zero);
}

CUTOUT_SIMD int sum_of(const std::uint8_t* values, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total += values[i];
  return total;
}

}  // namespace

void quantise(std::span<const float> planes, int channels, float scale, int zero, const Map& output,
              int first, int last) {
  const auto plane =
      static_cast<std::size_t>(output.width) * static_cast<std::size_t>(output.height);
  for (int y = first; y < last; ++y) {
    std::uint8_t* const row = output.at(0, y);
    for (int c = 0; c < channels; ++c) {
      const float* const values =
          planes.data() + static_cast<std::size_t>(c) * plane +
          static_cast<std::size_t>(y) * static_cast<std::size_t>(output.width);
      quantise_row(values, scale, static_cast<float>(zero), output.stride, output.width, row + c);
    }
    for (int c = channels; c < output.channels; ++c) {
      for (int x = 0; x < output.width; ++x) {
        row[x * output.stride + c] = static_cast<std::uint8_t>(zero);
      }
    }
  }
}

void max_pool(const MaxPool& pool, const Map& input, const Map& output, int first, int last) {
  pool_rows<std::uint8_t>(pool, input, output, first, last, max_into);
}

void resize(const Resize& resize, const Map& input, const Map& output, int first, int last) {
  for (int y = first; y < last; ++y) {
    const Neighbours v = neighbours(y, resize.factor, input.height);
    const ResizeRow row{input.at(0, v.first), input.at(0, v.second), input.stride, input.width,
                        v.weight};
    resize_row(row, resize.factor, output.width, output.channels, output.at(0, y), output.stride);
  }
}

void resize_floats(const Resize& resize, const Map& input, const Map& output, int first, int last) {
  for (int y = first; y < last; ++y) {
    const Neighbours v = neighbours(y, resize.factor, input.height);
    for (int x = 0; x < output.width; ++x) {
      const Neighbours u = neighbours(x, resize.factor, input.width);
      blend_floats(input.floats_at(u.first, v.first), input.floats_at(u.second, v.first),
                   input.floats_at(u.first, v.second), input.floats_at(u.second, v.second),
                   u.fraction(), v.fraction(), output.channels, output.floats_at(x, y));
    }
  }
}

float max_value(const Map& input) {
  float most = 0;
  for (int y = 0; y < input.height; ++y) {
    for (int x = 0; x < input.width; ++x) {
      most = largest_of(input.floats_at(x, y), input.channels, most);
    }
  }
  return most;
}

void split_bytes(const Map& input, float unit, const Map& output, int first, int last) {
  const float inverse = unit > 0 ? 1 / unit : 0;
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < input.width; ++x) {
      std::uint8_t* const high = output.at(x, y);
      split_row(input.floats_at(x, y), inverse, input.channels, high, high + input.channels);
    }
  }
}

namespace {

void sum_pixel(std::span<const Map> inputs, bool relu, int x, int y, int channels, float* sums) {
  std::copy_n(inputs.front().floats_at(x, y), channels, sums);
  for (const Map& input : inputs.subspan(1)) add_floats(input.floats_at(x, y), channels, sums);
  if (relu) at_least(0, channels, sums);
}

}  // namespace

void combine(std::span<const Map> inputs, bool relu, const Map& output, int first, int last) {
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < output.width; ++x) {
      sum_pixel(inputs, relu, x, y, output.channels, output.floats_at(x, y));
    }
  }
}

void combine_quantised(std::span<const Map> inputs, bool relu, float scale, int zero,
                       const Map& output, int first, int last) {
  constexpr int kBlock = 64;
  std::array<float, kBlock> sums;
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < output.width; ++x) {
      for (int c = 0; c < output.channels; c += kBlock) {
        const int count = std::min(kBlock, output.channels - c);
        std::copy_n(inputs.front().floats_at(x, y) + c, count, sums.data());
        for (const Map& input : inputs.subspan(1)) {
          add_floats(input.floats_at(x, y) + c, count, sums.data());
        }
        if (relu) at_least(0, count, sums.data());
        quantise_values(sums.data(), scale, static_cast<float>(zero), count, output.at(x, y) + c);
      }
    }
  }
}

void add(const Add& add, const Map& a, const Map& b, const Map& output, int first, int last) {
  const auto alone = [](const Map& map) { return map.stride == map.bytes; };
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
      std::memcpy(output.at(x, y) + before, input.at(x, y), static_cast<std::size_t>(input.bytes));
    }
  }
}

void dequantise(const Map& input, std::span<const float> scales, int zero, std::span<float> planes,
                int first, int last) {
  const auto plane = static_cast<std::size_t>(input.width) * static_cast<std::size_t>(input.height);
  for (int y = first; y < last; ++y) {
    for (int c = 0; c < input.channels; ++c) {
      const std::uint8_t* const row = input.at(0, y) + c;
      float* const values = planes.data() + static_cast<std::size_t>(c) * plane +
                            static_cast<std::size_t>(y) * static_cast<std::size_t>(input.width);
      const float scale = scales[static_cast<std::size_t>(c)];
      for (int x = 0; x < input.width; ++x) {
        values[x] = static_cast<float>(row[x * input.stride] - zero) * scale;
      }
    }
  }
}

void to_nchw(const Map& input, int channels, std::span<float> planes, int first, int last) {
  const auto plane = static_cast<std::size_t>(input.width) * static_cast<std::size_t>(input.height);
  const std::ptrdiff_t stride = input.stride / static_cast<std::ptrdiff_t>(sizeof(float));
  for (int y = first; y < last; ++y) {
    const float* const values = input.floats_at(0, y);
    float* const row =
        planes.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(input.width);
    for (int c = 0; c < channels; ++c) {
      float* const to = row + static_cast<std::size_t>(c) * plane;
      for (int x = 0; x < input.width; ++x) to[x] = values[x * stride + c];
    }
  }
}

void sum(const Map& input, float scale, float low, std::span<float> plane, int first, int last) {
  for (int y = first; y < last; ++y) {
    float* const values =
        plane.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(input.width);
    for (int x = 0; x < input.width; ++x) {
      values[x] = static_cast<float>(sum_of(input.at(x, y), input.channels)) * scale + low;
    }
  }
}

void fill_border(const Map& map, int border, int zero) {
  std::memset(map.at(-border, map.height + border), zero, kChunkInputs);
  if (border == 0) return;
  const auto line = static_cast<std::size_t>(map.pitch);
  const auto sides = static_cast<std::size_t>(border * map.stride);
  for (int y = -border; y < map.height + border; ++y) {
    std::uint8_t* const row = map.at(-border, y);
    if (y < 0 || y >= map.height) {
      std::memset(row, zero, line);
      continue;
    }
    std::memset(row, zero, sides);
    std::memset(map.at(map.width, y), zero, sides);
  }
}

}  // namespace cutout::low_precision
