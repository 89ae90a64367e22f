#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "low_precision/conv.h"

namespace cutout::low_precision {

/// The convolutions of an instruction set.
struct Kernel {
  ConvKernel run = nullptr;
  bool bf16 = false;  // of programs in bf16, or of those in 8 bits
  /// Bytes of a group's weights as the kernel multiplies them for a map of that size, a multiple of
  /// Plan::kAlignment; 0 for the packed ones. Null: 0 for every convolution.
  std::size_t (*transformed_bytes)(const Conv& conv, int width, int height) = nullptr;
  /// Writes those of groups [first_group, last_group).
  void (*transform)(const Conv& conv, int first_group, int last_group, std::uint8_t* to) = nullptr;
  /// Outputs on a side of the tiles that are computed together where weights are transformed.
  int tile_side = 1;
};

/// The kernel for an instruction set as native/core/cpu.h names it; null where there is none. For
/// AMX the first call asks the system for the tiles: null where it refuses.
Kernel kernel_for(const std::string& instruction_set);

/// Instruction sets of this processor that there is a kernel for, best first.
struct Kernels {
  std::vector<std::string> int8;  // for programs in 8 bits
  std::vector<std::string> bf16;
  /// Their kernels in bf16 gave a wrong result for a small product (self_check.h).
  std::vector<std::string> refused;
};
const Kernels& kernels();

// The kernels themselves, each in the file of its name.
Kernel conv_amx();
Kernel conv_avx512_vnni();
Kernel conv_avx_vnni();
Kernel conv_avx512();
Kernel conv_avx2();
Kernel conv_amx_bf16();
Kernel conv_avx512_bf16();
Kernel conv_i8mm();
Kernel conv_asimddp();

}  // namespace cutout::low_precision
