// The loops of the kernels for AVX2, AVX-VNNI and Arm, each of which includes them once
// (requantise.h).
//
// An Arithmetic has, for kRowPixels pixels and kLanes output channels:
//   Unit                                     the registers (requantise.h)
//   Start, start(task, panel)                what sums of a panel begin with
//   Block, begin(block, start)               registers of sums
//   kStepInputs, add(block, from, stride, row)
//                                            products of so many inputs of each pixel; pixels lie
//                                            `stride` apart
//   end(block, sums)                         the sums of each pixel
#pragma once

#include <algorithm>

#include "low_precision/requantise.h"

namespace cutout::low_precision {

namespace {

constexpr int kRowPixels = 6;

template <typename Unit>
using RowSums = GroupSums<Unit>[kRowPixels];

/// Sums of kRowPixels neighbouring pixels for one panel. A chunk holds whole steps, with weights of
/// 0 behind its inputs, and the memory of a map goes on for as long (Plan).
template <typename Arithmetic>
CUTOUT_KERNEL void multiply(const ConvTask& task, const std::uint8_t* window,
                            const std::int8_t* panel, const typename Arithmetic::Start& start,
                            RowSums<typename Arithmetic::Unit>& sums) {
  constexpr int kStep = Arithmetic::kStepInputs;
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  typename Arithmetic::Block block;
  Arithmetic::begin(block, start);
  for (std::size_t i = 0; i < task.offsets.size(); ++i) {
    const std::uint8_t* from = window + task.offsets[i];
    const std::int8_t* row = panel + i * kChunkBytes;
    const int bytes = task.conv->chunks[i].bytes;
    for (int j = 0; j < bytes; j += kStep, from += kStep, row += kStep * kLanes) {
      Arithmetic::add(block, from, stride, row);
    }
  }
  Arithmetic::end(block, sums);
}

template <typename Arithmetic>
CUTOUT_TARGET void convolve(const ConvTask& task, const ConvPart& part) {
  using Unit = typename Arithmetic::Unit;
  const bool int16_weights = task.conv->int16_weights;
  const int width = task.output.width;
  for (int group = part.first_group; group < part.last_group; ++group) {
    const std::int8_t* const weights = task.weights(group);
    const std::int8_t* const low_weights = weights + (int16_weights ? task.panel_bytes() : 0);
    const typename Arithmetic::Start start = Arithmetic::start(task, weights);
    const typename Arithmetic::Start low_start = Arithmetic::start(task, low_weights);
    const Requantiser<Unit> requantiser = requantiser_of<Unit>(task, group);
    for (int y = part.first_row; y < part.last_row; ++y) {
      for (int x = 0; x < width; x += kRowPixels) {
        // The last ones of a row begin earlier and are computed twice.
        const int from = std::max(0, std::min(x, width - kRowPixels));
        const std::uint8_t* const window = task.window(from, y);
        RowSums<Unit> sums;
        RowSums<Unit> low;
        multiply<Arithmetic>(task, window, weights, start, sums);
        if (int16_weights) multiply<Arithmetic>(task, window, low_weights, low_start, low);
        const int pixels = std::min(kRowPixels, width - from);
        std::uint8_t* output = task.group_at(task.output.at(from, y), group);
        for (int p = 0; p < pixels; ++p, output += task.output.stride) {
          if (int16_weights) {
            requantise<Unit>(sums[p], low[p], requantiser, output);
          } else {
            requantise<Unit>(sums[p], requantiser, output);
          }
        }
      }
    }
  }
}

}  // namespace

}  // namespace cutout::low_precision
