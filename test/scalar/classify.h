#pragma once

#include <span>
#include <vector>

#include "classify/features.h"
#include "classify/statistics.h"

namespace cutout::test {

/// The definitions of kernels of native/classify, pixel by pixel in double precision: what the fast
/// ones are compared with. Arguments are those of the kernels.

std::vector<Pooled> pool_maps_scalar(std::span<const float> maps, std::span<const float> weights);

void border_statistics_scalar(const Thumbnail& thumbnail, Statistics& statistics);

Regions region_statistics_scalar(const Thumbnail& thumbnail, std::span<const float> weights);

}  // namespace cutout::test
