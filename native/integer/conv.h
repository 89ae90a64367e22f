#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "integer/plan.h"
#include "integer/program.h"

namespace cutout::integer {

/// One convolution on the maps of a run.
struct ConvTask {
  /// `gain` is what 1 of the input stands for where the output is of floats.
  ConvTask(const Conv& conv, const Map& input, const Map& output, bool floats, float gain);

  /// The first input of the window of an output pixel.
  [[nodiscard]] const std::uint8_t* window(int x, int y) const {
    return input.at(x * conv->stride - conv->left, y * conv->stride - conv->top) + conv->channel;
  }
  /// The panels of a group of kLanes output channels, of 16-bit weights the high bytes' first.
  [[nodiscard]] const std::int8_t* weights(int group) const {
    return conv->weights.data() + static_cast<std::size_t>(group) * panels() * panel_bytes();
  }
  [[nodiscard]] std::size_t panels() const { return static_cast<std::size_t>(conv->panels()); }
  [[nodiscard]] std::size_t panel_bytes() const { return offsets.size() * kChunkBytes; }

  const Conv* conv;
  Map input;
  Map output;
  bool floats;  // whether the output is of floats
  float gain;
  std::vector<std::ptrdiff_t> offsets;  // of every chunk's inputs from the window
};

/// Computes output rows [first_row, last_row) of groups [first_group, last_group). Different parts
/// may run at the same time.
using ConvKernel = void (*)(const ConvTask& task, int first_row, int last_row, int first_group,
                            int last_group);

void conv_amx(const ConvTask& task, int first_row, int last_row, int first_group, int last_group);
void conv_avx512_vnni(const ConvTask& task, int first_row, int last_row, int first_group,
                      int last_group);
void conv_avx_vnni(const ConvTask& task, int first_row, int last_row, int first_group,
                   int last_group);

/// The kernel for an instruction set as native/core/cpu.h names it; null where there is none. For
/// "amx_int8" the first call asks the system for the tiles: null where it refuses.
ConvKernel kernel_for(const std::string& instruction_set);

/// Instruction sets of this processor that there is a kernel for, best first.
std::vector<std::string> kernels();

}  // namespace cutout::integer
