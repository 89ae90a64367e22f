#pragma once

#include <span>
#include <vector>

#include "core/thread_pool.h"

namespace cutout {

/// One map pooled under weights.
struct Pooled {
  float mean = 0;  // sum(weight * value) / sum(weight)
  float max = 0;   // max(weight * value)

  bool operator==(const Pooled&) const = default;
};

/// Pools each of `maps.size() / weights.size()` dense maps, stored one after the other. All weights
/// count as 1 where their sum is below 1e-6.
///
/// | limit     |                                                                            |
/// |-----------|----------------------------------------------------------------------------|
/// | values    | finite; weights 0..1, at least one                                         |
/// | threads   | the pool, whole maps each: same bits                                       |
/// | order     | sums have a fixed order: the same bits on every processor                  |
/// | agreement | maxima equal, means within 1e-5 of the largest |value| of the scalar version |
std::vector<Pooled> pool_maps(std::span<const float> maps, std::span<const float> weights,
                              ThreadPool& pool);

}  // namespace cutout
