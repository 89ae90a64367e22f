#include "classify/features.h"

#include <algorithm>
#include <cmath>

#include "classify/pool.h"
#include "image/plane.h"

namespace cutout {

namespace {

std::vector<float> weights_of(const Matte& matte, int side, ThreadPool& pool) {
  const auto n = static_cast<std::size_t>(side);
  std::vector<float> weights(n * n);
  resize_plane(matte.alpha, matte.width, matte.height, side, side, weights, pool);
  return weights;
}

}  // namespace

std::size_t feature_count(const DetectorShape& shape) {
  return static_cast<std::size_t>(shape.kinds) + static_cast<std::size_t>(shape.channels) +
         std::tuple_size_v<Statistics> + 2 * std::tuple_size_v<RegionStatistics>;
}

void join_features(const DetectorShape& shape, std::span<const float> heat,
                   std::span<const float> deep, const Look& look, const Matte& matte,
                   ThreadPool& pool, std::span<float> features) {
  auto next = features.begin();
  for (const Pooled& kind : pool_maps(heat, weights_of(matte, shape.heat_side, pool), pool)) {
    *next++ = std::sqrt(std::max(kind.max, 0.0F));
  }
  for (const Pooled& map : pool_maps(deep, weights_of(matte, shape.deep_side, pool), pool)) {
    *next++ = map.mean;
  }
  next = std::copy(look.statistics.begin(), look.statistics.end(), next);
  const Regions regions =
      region_statistics(look.thumbnail, weights_of(matte, look.thumbnail.side, pool), pool);
  next = std::copy(regions.inside.begin(), regions.inside.end(), next);
  std::copy(regions.outside.begin(), regions.outside.end(), next);
}

}  // namespace cutout
