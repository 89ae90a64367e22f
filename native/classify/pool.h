#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cutout {

/// Mean of a map (`width` x `height`, dense) over the area of every cell of a grid of `out_width` x
/// `out_height`; linear between sample centres in a direction that enlarges. `out` is dense.
///
/// | limit     |                                                                            |
/// |-----------|----------------------------------------------------------------------------|
/// | size      | map and grid of any size from 1 x 1                                        |
/// | in == out | no                                                                         |
/// | threads   | the calling one                                                            |
/// | agreement | within 1e-5 of the largest value of the scalar version (float against double) |
void reduce_map(std::span<const float> map, int width, int height, int out_width, int out_height,
                std::span<float> out);

/// The definition, in double precision.
void reduce_map_scalar(std::span<const float> map, int width, int height, int out_width,
                       int out_height, std::span<float> out);

/// What is known of one map under weights.
struct Pooled {
  float weighted_mean = 0;  // sum(weight * value) / sum(weight); the plain mean without any weight
  float mean = 0;
  float weighted_max = 0;  // max(weight * value)
  float max = 0;

  bool operator==(const Pooled&) const = default;
};

/// Pools every one of `maps.size() / weights.size()` dense maps that lie one after the other.
///
/// | limit     |                                                                            |
/// |-----------|----------------------------------------------------------------------------|
/// | values    | finite; weights 0..1, at least one                                         |
/// | threads   | the calling one                                                            |
/// | order     | sums run in a fixed order: the same bits on every processor                |
/// | agreement | maxima equal, means within 1e-5 of the largest |value| of the scalar version |
std::vector<Pooled> pool_maps(std::span<const float> maps, std::span<const float> weights);

/// The definition, in double precision.
std::vector<Pooled> pool_maps_scalar(std::span<const float> maps, std::span<const float> weights);

}  // namespace cutout
