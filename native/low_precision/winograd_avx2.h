#pragma once

#include <cstddef>
#include <cstdint>

#include "low_precision/conv.h"

namespace cutout::low_precision {

// Winograd's F(2×2, 3×3): four outputs of a 3×3 convolution from 16 products a channel instead of
// 36. In integers it is exact: with d the 4×4 inputs, g the weights and
//
//   B = 1  0 -1  0    G = 2  0  0    A = 1  1  1  0
//       0  1  1  0        1  1  1        0  1 -1 -1
//       0 -1  1  0        1 -1  1
//       0  1  0 -1        0  0  2
//
// the outputs are A [sum over channels of (G g Gᵀ) ∘ (B d Bᵀ)] Aᵀ / 4. The factors of the products
// fit 16 bits (at most 9 × 128 and 4 × 255), and sums modulo 2³² suffice, because four times the
// result fits 32 bits.
//
// | limit      |                                                            |
// |------------|------------------------------------------------------------|
// | kernel     | 3×3, stride 1, any dilation                                |
// | channels   | a multiple of 16, at most 1024                             |
// | weights    | of 8 bits, or the two panels of 16-bit ones                |

/// Bytes of the transformed weights of a group of output channels; 0 where the limits exclude it.
std::size_t winograd_bytes(const Conv& conv);

/// Transforms the weights of groups [first_group, last_group) to where they belong in `all`, which
/// has room for every group and is aligned to 32 bytes.
void winograd_weights(const Conv& conv, int first_group, int last_group, std::uint8_t* all);

/// A ConvKernel for tasks with transformed weights.
void conv_winograd(const ConvTask& task, int first_row, int last_row, int first_group,
                   int last_group);

}  // namespace cutout::low_precision
