#pragma once

#include <cstddef>

#include "cuda/kernel.h"
#include "matte/math/blocks.h"

namespace cutout::cuda {

/// Number of the blocks of an output.
inline std::size_t block_count(int width, int height) {
  const int side = block_side(width, height);
  return static_cast<std::size_t>(ceil_div(width, side)) *
         static_cast<std::size_t>(ceil_div(height, side));
}

}  // namespace cutout::cuda
