// The loops of the kernels for Arm. Each kernel includes them once, after defining CUTOUT_TARGET: a
// function is only inlined into one of the same instruction set.
//
// An Arithmetic has, for kRowPixels pixels and kLanes output channels:
//   Start, start(task, panel)                what sums of a panel begin with
//   Block, begin(block, start)               registers of sums
//   add(block, from, stride, row)            products of kStepInputs inputs of each pixel; pixels
//                                            lie `stride` apart
//   end(block, sums)                         the sums of each pixel
#pragma once

#include <arm_neon.h>

#include <algorithm>

#include "low_precision/conv.h"
#include "low_precision/requantise_neon.h"

namespace cutout::low_precision {

namespace {

#define CUTOUT_ARM CUTOUT_TARGET CUTOUT_NEON

constexpr int kRowPixels = 6;
/// Inputs of a register; a chunk holds whole ones, with weights of 0 behind its inputs, and the
/// memory of a map goes on for as long (Plan).
constexpr int kStepInputs = 16;
constexpr int kStepBytes = kStepInputs * kLanes;

/// Sums of kRowPixels neighbouring pixels for one panel.
template <typename Arithmetic>
CUTOUT_ARM void multiply(const ConvTask& task, const std::uint8_t* window, const std::int8_t* panel,
                         const typename Arithmetic::Start& start, SumsNeon (&sums)[kRowPixels]) {
  const std::ptrdiff_t stride = task.input.stride * task.conv->stride;
  typename Arithmetic::Block block;
  Arithmetic::begin(block, start);
  for (std::size_t i = 0; i < task.offsets.size(); ++i) {
    const std::uint8_t* from = window + task.offsets[i];
    const std::int8_t* row = panel + i * kChunkBytes;
    const int bytes = task.conv->chunks[i].bytes;
    for (int j = 0; j < bytes; j += kStepInputs, from += kStepInputs, row += kStepBytes) {
      Arithmetic::add(block, from, stride, row);
    }
  }
  Arithmetic::end(block, sums);
}

template <typename Arithmetic>
CUTOUT_TARGET void convolve(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group) {
  const bool int16_weights = task.conv->int16_weights;
  const int width = task.output.width;
  for (int group = first_group; group < last_group; ++group) {
    const std::int8_t* const weights = task.weights(group);
    const std::int8_t* const low_weights = weights + (int16_weights ? task.panel_bytes() : 0);
    const typename Arithmetic::Start start = Arithmetic::start(task, weights);
    const typename Arithmetic::Start low_start = Arithmetic::start(task, low_weights);
    const RequantiserNeon requantiser = requantiser_neon_of(task, group);
    for (int y = first_row; y < last_row; ++y) {
      for (int x = 0; x < width; x += kRowPixels) {
        // The last ones of a row begin earlier and are computed twice.
        const int from = std::max(0, std::min(x, width - kRowPixels));
        SumsNeon sums[kRowPixels];
        SumsNeon low[kRowPixels];
        multiply<Arithmetic>(task, task.window(from, y), weights, start, sums);
        if (int16_weights)
          multiply<Arithmetic>(task, task.window(from, y), low_weights, low_start, low);
        const int pixels = std::min(kRowPixels, width - from);
        std::uint8_t* output = task.group_at(task.output.at(from, y), group);
        for (int p = 0; p < pixels; ++p, output += task.output.stride) {
          if (int16_weights) {
            requantise(sums[p], low[p], requantiser, output);
          } else {
            requantise(sums[p], requantiser, output);
          }
        }
      }
    }
  }
}

}  // namespace

}  // namespace cutout::low_precision
