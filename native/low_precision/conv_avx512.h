// The loops of the kernels for AVX-512. Each kernel includes them once, after defining
// CUTOUT_TARGET: a function is only inlined into one of the same instruction set.
//
// An Arithmetic has, for kLanes output channels:
//   Sums                                 registers of sums
//   zero(), dot(sums, inputs, weights)   inputs: 4 bytes of one pixel in every lane
//   Finisher(task, group)                constants of the channels
//     finish(sums, output)               stores the outputs of one pixel
//   kWide; where true the Finisher also has finish(high, low, output)
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>

#include "low_precision/conv.h"

namespace cutout::low_precision {

namespace {

/// Sums of kPixels neighbouring pixels for kPanels panels that lie `between` bytes
/// apart, in registers.
template <typename Arithmetic, int kPixels, int kPanels>
CUTOUT_TARGET CUTOUT_INLINE void multiply(const ConvTask& task, const std::uint8_t* window,
                                          const std::int8_t* weights, std::size_t between,
                                          typename Arithmetic::Sums (&sums)[kPixels][kPanels]) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  for (auto& pixel : sums) {
    for (auto& sum : pixel) sum = Arithmetic::zero();
  }
  for (std::size_t i = 0; i < task.offsets.size(); ++i) {
    const std::uint8_t* from = window + task.offsets[i];
    const std::int8_t* row = weights + i * kChunkBytes;
    const int groups = (task.conv->chunks[i].bytes + 3) / 4;
    for (int j = 0; j < groups; ++j, from += 4, row += 4 * kLanes) {
      __m512i weights[kPanels];
#pragma GCC unroll 4
      for (int b = 0; b < kPanels; ++b) {
        weights[b] = _mm512_loadu_si512(row + static_cast<std::size_t>(b) * between);
      }
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) {
        const __m512i inputs = _mm512_set1_epi32(four_bytes(from + p * stride));
#pragma GCC unroll 4
        for (int b = 0; b < kPanels; ++b) {
          sums[p][b] = Arithmetic::dot(sums[p][b], inputs, weights[b]);
        }
      }
    }
  }
}

/// Some groups of one row.
template <typename Arithmetic, int kPixels, int kPanels>
CUTOUT_TARGET void row_of(const ConvTask& task, int y, int group) {
  const bool int16_weights = Arithmetic::kWide && task.conv->int16_weights;
  const int width = task.output.width;
  std::array<typename Arithmetic::Finisher, kPanels> finishers;
  for (int b = 0; b < kPanels; ++b) {
    finishers[static_cast<std::size_t>(b)] = {task, int16_weights ? group : group + b};
  }
  for (int x = 0; x < width; x += kPixels) {
    // The last ones of a row begin earlier and are computed twice.
    const int from = std::max(0, std::min(x, width - kPixels));
    typename Arithmetic::Sums sums[kPixels][kPanels];
    multiply<Arithmetic, kPixels, kPanels>(task, task.window(from, y), task.weights(group),
                                           task.panel_bytes(), sums);
    const int pixels = std::min(kPixels, width - from);
    std::uint8_t* output = task.output.at(from, y);
    for (int p = 0; p < pixels; ++p, output += task.output.stride) {
      if constexpr (Arithmetic::kWide) {
        if (int16_weights) {
          finishers[0].finish(sums[p][0], sums[p][kPanels - 1], task.group_at(output, group));
          continue;
        }
      }
#pragma GCC unroll 4
      for (int b = 0; b < kPanels; ++b) {
        finishers[static_cast<std::size_t>(b)].finish(sums[p][b], task.group_at(output, group + b));
      }
    }
  }
}

template <typename Arithmetic>
CUTOUT_TARGET void convolve(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group) {
  const bool int16_weights = Arithmetic::kWide && task.conv->int16_weights;
  for (int group = first_group; group < last_group;) {
    const int left = last_group - group;
    const int groups = int16_weights ? 1 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    for (int y = first_row; y < last_row; ++y) {
      if (int16_weights || groups == 2) {
        row_of<Arithmetic, 12, 2>(task, y, group);
      } else if (groups == 4) {
        row_of<Arithmetic, 6, 4>(task, y, group);
      } else {
        row_of<Arithmetic, 24, 1>(task, y, group);
      }
    }
    group += groups;
  }
}

}  // namespace

}  // namespace cutout::low_precision
