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
  return 2 * (static_cast<std::size_t>(shape.kinds) + static_cast<std::size_t>(shape.channels)) +
         std::tuple_size_v<Statistics>;
}

void join_features(const DetectorShape& shape, std::span<const float> heat,
                   std::span<const float> deep, const Statistics& statistics, const Matte& matte,
                   ThreadPool& pool, std::span<float> features) {
  auto next = features.begin();
  const std::vector<Pooled> kinds = pool_maps(heat, weights_of(matte, shape.heat_side, pool));
  for (const Pooled& kind : kinds) *next++ = std::sqrt(std::max(kind.weighted_max, 0.0F));
  for (const Pooled& kind : kinds) *next++ = std::sqrt(std::max(kind.max, 0.0F));
  const std::vector<Pooled> maps = pool_maps(deep, weights_of(matte, shape.deep_side, pool));
  for (const Pooled& map : maps) *next++ = map.weighted_mean;
  for (const Pooled& map : maps) *next++ = map.mean;
  std::copy(statistics.begin(), statistics.end(), next);
}

}  // namespace cutout
