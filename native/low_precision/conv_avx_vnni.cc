#include "low_precision/conv.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#define CUTOUT_AVX_VNNI __attribute__((target("avx2,avxvnni")))

namespace cutout::low_precision {

namespace {

constexpr int kHalf = kLanes / 2;
constexpr int kPixels = 6;

/// Constants of half a group of output channels.
struct Requantiser256 {
  __m256 scale;
  __m256i bias;
};

CUTOUT_AVX_VNNI inline __attribute__((always_inline)) __m256i quantised(__m256 value, int zero) {
  const __m256 bounded =
      _mm256_min_ps(_mm256_max_ps(value, _mm256_set1_ps(-1e6F)), _mm256_set1_ps(1e6F));
  return _mm256_add_epi32(_mm256_cvtps_epi32(bounded), _mm256_set1_epi32(zero));
}

/// 16 numbers of 32 bits, as 8 bits.
CUTOUT_AVX_VNNI inline __attribute__((always_inline)) void store(__m256i first, __m256i second,
                                                                 std::uint8_t* output) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(output), bytes);
}

CUTOUT_AVX_VNNI inline __attribute__((always_inline)) void multiply(const ConvTask& task,
                                                                    const std::uint8_t* window,
                                                                    const std::int8_t* weights,
                                                                    __m256i (&sums)[kPixels][2]) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  for (auto& pixel : sums) pixel[0] = pixel[1] = _mm256_setzero_si256();
  for (std::size_t i = 0; i < task.offsets.size(); ++i) {
    const std::uint8_t* from = window + task.offsets[i];
    const std::int8_t* row = weights + i * kChunkBytes;
    const int groups = (task.conv->chunks[i].bytes + 3) / 4;
    for (int j = 0; j < groups; ++j, from += 4, row += 4 * kLanes) {
      const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
      const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 32));
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        std::int32_t four;
        std::memcpy(&four, from + p * stride, sizeof(four));
        const __m256i inputs = _mm256_set1_epi32(four);
        sums[p][0] = _mm256_dpbusd_avx_epi32(sums[p][0], inputs, first);
        sums[p][1] = _mm256_dpbusd_avx_epi32(sums[p][1], inputs, second);
      }
    }
  }
}

}  // namespace

CUTOUT_AVX_VNNI void conv_avx_vnni(const ConvTask& task, int first_row, int last_row,
                                   int first_group, int last_group) {
  const Conv& conv = *task.conv;
  const int width = task.output.width;
  const bool wide = conv.wide;
  for (int group = first_group; group < last_group; ++group) {
    const std::int8_t* const weights = task.weights(group);
    std::array<Requantiser256, 2> requantisers;
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t at = static_cast<std::size_t>(group) * kLanes + half * kHalf;
      const __m256 scale = _mm256_loadu_ps(conv.scales.data() + at);
      requantisers[half] = {
          task.floats ? _mm256_mul_ps(scale, _mm256_set1_ps(task.input_scale)) : scale,
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(conv.bias.data() + at))};
    }
    for (int y = first_row; y < last_row; ++y) {
      for (int x = 0; x < width; x += kPixels) {
        const int from = std::max(0, std::min(x, width - kPixels));
        __m256i sums[kPixels][2];
        multiply(task, task.window(from, y), weights, sums);
        __m256i low[kPixels][2];
        if (wide) multiply(task, task.window(from, y), weights + task.panel_bytes(), low);
        const int pixels = std::min(kPixels, width - from);
        const std::ptrdiff_t lane = task.floats ? sizeof(float) : 1;
        std::uint8_t* output =
            task.output.at(from, y) + static_cast<std::ptrdiff_t>(group) * kLanes * lane;
        for (int p = 0; p < pixels; ++p, output += task.output.stride) {
          __m256 values[2];
          for (std::size_t half = 0; half < 2; ++half) {
            const __m256i last = wide ? low[p][half] : sums[p][half];
            __m256 value = _mm256_cvtepi32_ps(_mm256_add_epi32(last, requantisers[half].bias));
            if (wide) {
              const __m256 upper =
                  _mm256_mul_ps(_mm256_cvtepi32_ps(sums[p][half]), _mm256_set1_ps(256.0F));
              value = _mm256_add_ps(upper, value);
            }
            values[half] = _mm256_mul_ps(value, requantisers[half].scale);
          }
          if (task.floats) {
            auto* const floats = reinterpret_cast<float*>(output);
            const __m256 lower_bound = _mm256_set1_ps(conv.relu ? 0.0F : -INFINITY);
            _mm256_storeu_ps(floats, _mm256_max_ps(values[0], lower_bound));
            _mm256_storeu_ps(floats + kHalf, _mm256_max_ps(values[1], lower_bound));
          } else {
            store(quantised(values[0], conv.zero), quantised(values[1], conv.zero), output);
          }
        }
      }
    }
  }
}

}  // namespace cutout::low_precision

#endif
