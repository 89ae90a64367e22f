#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/simd.h"
#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

/// One convolution on the maps of a run.
struct ConvTask {
  /// `scale`: what 1 of the input stands for, where the output is of floats.
  ConvTask(const Conv& of, const Map& from, const Map& to, float scale)
      : conv(&of),
        input(from),
        output(to),
        floats(to.type == Type::kFloats),
        group_bytes(kLanes * bytes_of(to.type)),
        input_scale(scale) {
    offsets.reserve(of.chunks.size());
    for (const Chunk& chunk : of.chunks) {
      offsets.push_back(chunk.row * of.dilation * from.pitch +
                        chunk.column * of.dilation * from.stride + chunk.offset);
    }
  }

  /// The first input of the window of an output pixel.
  [[nodiscard]] const std::uint8_t* window(int x, int y) const {
    return input.at(x * conv->stride - conv->left, y * conv->stride - conv->top) +
           conv->channel * conv->element();
  }
  /// The panels of a group of kLanes output channels, of 16-bit weights the high bytes' first.
  [[nodiscard]] const std::int8_t* weights(int group) const {
    return conv->weights.data() + static_cast<std::size_t>(group) * panels() * panel_bytes();
  }
  /// Where a group's outputs of a pixel lie.
  [[nodiscard]] std::uint8_t* group_at(std::uint8_t* pixel, int group) const {
    return pixel + group * group_bytes;
  }
  /// Returns the transformed weights of a group, where the kernel transforms weights.
  [[nodiscard]] const std::uint8_t* transformed_weights(int group) const {
    return transformed.data() +
           static_cast<std::size_t>(group - transformed_from) * transformed_bytes;
  }
  [[nodiscard]] std::size_t panels() const { return static_cast<std::size_t>(conv->panels()); }
  [[nodiscard]] std::size_t panel_bytes() const { return offsets.size() * kChunkBytes; }

  const Conv* conv;
  Map input;
  Map output;
  bool floats;                 // whether the output is of floats
  std::ptrdiff_t group_bytes;  // of kLanes channels of the output
  float input_scale;
  std::vector<std::ptrdiff_t> offsets;  // of every chunk's inputs from the window
  /// Transformed weights of some groups (Kernel::transform), empty where the kernel takes the
  /// packed ones; the first of those groups; and the bytes of one.
  std::span<const std::uint8_t> transformed;
  int transformed_from = 0;
  std::size_t transformed_bytes = 0;
};

/// The 4 bytes at an address as one number.
CUTOUT_INLINE std::int32_t four_bytes(const void* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

/// Computes output rows [first_row, last_row) of groups [first_group, last_group). Different parts
/// may run at the same time.
using ConvKernel = void (*)(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group);

}  // namespace cutout::low_precision
