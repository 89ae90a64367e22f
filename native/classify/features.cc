#include "classify/features.h"

#include <algorithm>
#include <cmath>

#include "classify/pool.h"

namespace cutout {

namespace {

std::vector<float> weights_of(const Matte& matte, int side) {
  const auto n = static_cast<std::size_t>(side);
  std::vector<float> weights(n * n);
  reduce_map(matte.alpha, matte.width, matte.height, side, side, weights);
  return weights;
}

}  // namespace

std::size_t feature_count(const DetectorShape& shape) {
  return 2 * (static_cast<std::size_t>(shape.kinds) + static_cast<std::size_t>(shape.channels)) +
         std::tuple_size_v<Statistics>;
}

void join_features(const DetectorShape& shape, std::span<const float> heat,
                   std::span<const float> deep, const Statistics& statistics, const Matte& matte,
                   std::span<float> features) {
  auto next = features.begin();
  const std::vector<Pooled> kinds = pool_maps(heat, weights_of(matte, shape.heat_side));
  for (const Pooled& kind : kinds) *next++ = std::sqrt(std::max(kind.weighted_max, 0.0F));
  for (const Pooled& kind : kinds) *next++ = std::sqrt(std::max(kind.max, 0.0F));
  const std::vector<Pooled> maps = pool_maps(deep, weights_of(matte, shape.deep_side));
  for (const Pooled& map : maps) *next++ = map.weighted_mean;
  for (const Pooled& map : maps) *next++ = map.mean;
  std::copy(statistics.begin(), statistics.end(), next);
}

}  // namespace cutout
