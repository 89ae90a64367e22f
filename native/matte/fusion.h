#pragma once

#include <cstddef>
#include <span>

#include "core/thread_pool.h"

namespace cutout {

/// What fuse_outputs found and changed.
struct FusionSummary {
  int regions = 0;   // about which the two outputs disagree
  int replaced = 0;  // of them, taken from the second output

  bool operator==(const FusionSummary&) const = default;
};

/// Fuses two networks' outputs to one image, in place of the first (docs/matting.md, "Two
/// networks"). Where they agree, and along edges that they only draw differently, the first output
/// stands with all its detail. A *region* is a connected set of network pixels in which the second
/// output is higher, or in which it is lower, by more than kDisagreement, and that is wider than an
/// edge. It is given as a whole to the second output where that is more confident by a margin,
/// summed over the region (`prefers_second`); nothing is averaged.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | layout    | both: rows of `width` floats without padding, width * height of them                   |
/// | values    | 0..1 (to_probability)                                                                  |
/// | in == out | `first` is changed; `second` must not overlap it                                       |
/// | size      | from 1 x 1, sides up to 8192                                                           |
/// | threads   | rows over the pool; same bytes and summary for any number of threads                   |
/// | scratch   | 6 bytes a network pixel, and connected_components.h                                    |
/// | agreement | exact with the scalar version                                                          |
FusionSummary fuse_outputs(std::span<float> first, std::span<const float> second, int width,
                           int height, ThreadPool& pool);

/// The definition: windows and flood fill pixel by pixel.
FusionSummary fuse_outputs_scalar(std::span<float> first, std::span<const float> second, int width,
                                  int height);

}  // namespace cutout
