#include "low_precision/bf16_maps.h"

#include <algorithm>
#include <array>
#include <limits>

#include "low_precision/bf16.h"
#include "low_precision/max_pool.h"
#include "low_precision/neighbours.h"

namespace cutout::low_precision {

namespace {

Bf16* at(const Map& map, int x, int y) { return reinterpret_cast<Bf16*>(map.at(x, y)); }

CUTOUT_SIMD void round_row(const float* values, std::ptrdiff_t stride, int count, Bf16* output) {
  for (int x = 0; x < count; ++x) output[x * stride] = bf16_of(values[x]);
}

/// Bits whose order as signed integers is that of the values. Its own inverse.
CUTOUT_INLINE std::int16_t ordered(Bf16 value) {
  const auto bits = static_cast<std::int16_t>(value);
  return static_cast<std::int16_t>(bits ^ ((bits >> 15) & 0x7fff));
}

CUTOUT_SIMD void max_into(const Bf16* values, int count, Bf16* most) {
  for (int i = 0; i < count; ++i) {
    const std::int16_t value = std::max(ordered(most[i]), ordered(values[i]));
    most[i] = static_cast<Bf16>(ordered(static_cast<Bf16>(value)));
  }
}

CUTOUT_SIMD void blend(const Bf16* a, const Bf16* b, const Bf16* c, const Bf16* d, float x_weight,
                       float y_weight, int count, Bf16* output) {
  for (int i = 0; i < count; ++i) {
    const float upper = float_of(a[i]) * (1 - x_weight) + float_of(b[i]) * x_weight;
    const float lower = float_of(c[i]) * (1 - x_weight) + float_of(d[i]) * x_weight;
    output[i] = bf16_of(upper * (1 - y_weight) + lower * y_weight);
  }
}

CUTOUT_SIMD void add_two(const Bf16* a, const Bf16* b, float lower_bound, int count, Bf16* output) {
  for (int i = 0; i < count; ++i) {
    output[i] = bf16_of(std::max(float_of(a[i]) + float_of(b[i]), lower_bound));
  }
}

CUTOUT_SIMD void add_to(const Bf16* values, int count, float* sums) {
  for (int i = 0; i < count; ++i) sums[i] += float_of(values[i]);
}

CUTOUT_SIMD void round_sums(const float* sums, float lower_bound, int count, Bf16* output) {
  for (int i = 0; i < count; ++i) output[i] = bf16_of(std::max(sums[i], lower_bound));
}

}  // namespace

void bf16_of_planes(std::span<const float> planes, int channels, const Map& output, int first,
                    int last) {
  const auto width = static_cast<std::size_t>(output.width);
  const std::size_t plane = width * static_cast<std::size_t>(output.height);
  const std::ptrdiff_t stride = output.stride / static_cast<std::ptrdiff_t>(sizeof(Bf16));
  for (int y = first; y < last; ++y) {
    Bf16* const row = at(output, 0, y);
    for (int c = 0; c < output.channels; ++c) {
      if (c >= channels) {
        for (int x = 0; x < output.width; ++x) row[x * stride + c] = 0;
        continue;
      }
      const float* const values =
          planes.data() + static_cast<std::size_t>(c) * plane + static_cast<std::size_t>(y) * width;
      round_row(values, stride, output.width, row + c);
    }
  }
}

void max_pool_bf16(const MaxPool& pool, const Map& input, const Map& output, int first, int last) {
  pool_rows<Bf16>(pool, input, output, first, last, max_into);
}

void resize_bf16(const Resize& resize, const Map& input, const Map& output, int first, int last) {
  for (int y = first; y < last; ++y) {
    const Neighbours v = neighbours(y, resize.factor, input.height);
    for (int x = 0; x < output.width; ++x) {
      const Neighbours u = neighbours(x, resize.factor, input.width);
      blend(at(input, u.first, v.first), at(input, u.second, v.first), at(input, u.first, v.second),
            at(input, u.second, v.second), u.fraction(), v.fraction(), output.channels,
            at(output, x, y));
    }
  }
}

void combine_bf16(std::span<const Map> inputs, bool relu, const Map& output, int first, int last) {
  constexpr int kBlock = 64;
  std::array<float, kBlock> sums;
  const float lower_bound = relu ? 0.0F : -std::numeric_limits<float>::infinity();
  for (int y = first; y < last; ++y) {
    for (int x = 0; x < output.width; ++x) {
      if (inputs.size() == 2) {
        add_two(at(inputs[0], x, y), at(inputs[1], x, y), lower_bound, output.channels,
                at(output, x, y));
        continue;
      }
      for (int c = 0; c < output.channels; c += kBlock) {
        const int count = std::min(kBlock, output.channels - c);
        sums.fill(0);
        for (const Map& input : inputs) add_to(at(input, x, y) + c, count, sums.data());
        round_sums(sums.data(), lower_bound, count, at(output, x, y) + c);
      }
    }
  }
}

void bf16_to_nchw(const Map& input, int channels, std::span<float> planes, int first, int last) {
  const auto width = static_cast<std::size_t>(input.width);
  const std::size_t plane = width * static_cast<std::size_t>(input.height);
  for (int y = first; y < last; ++y) {
    float* const row = planes.data() + static_cast<std::size_t>(y) * width;
    const Bf16* const values = at(input, 0, y);
    const std::ptrdiff_t stride = input.stride / static_cast<std::ptrdiff_t>(sizeof(Bf16));
    for (int c = 0; c < channels; ++c) {
      float* const to = row + static_cast<std::size_t>(c) * plane;
      for (int x = 0; x < input.width; ++x) to[x] = float_of(values[x * stride + c]);
    }
  }
}

}  // namespace cutout::low_precision
