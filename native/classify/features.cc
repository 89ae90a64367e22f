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
  return static_cast<std::size_t>(shape.classes) + static_cast<std::size_t>(shape.channels) +
         std::tuple_size_v<Statistics> + 2 * std::tuple_size_v<RegionStatistics>;
}

void join_features(const DetectorShape& shape, std::span<const float> heatmaps,
                   std::span<const float> feature_maps, const ImageStatistics& image,
                   const Matte& matte, ThreadPool& pool, std::span<float> features) {
  const int fine = image.thumbnail.side;
  const std::vector<float> of_thumbnail = weights_of(matte, fine, pool);
  // Where the samples of a map cover whole pixels of the thumbnail, averaging the thumbnail's
  // weights is the same as averaging the matte, which may be a hundred times as large.
  const auto weights_for = [&](int side) {
    const bool nested = fine % side == 0;
    return weights_of(nested ? Matte{of_thumbnail, fine, fine} : matte, side, pool);
  };
  auto next = features.begin();
  for (const Pooled& of_class : pool_maps(heatmaps, weights_for(shape.heatmap_side), pool)) {
    *next++ = std::sqrt(std::max(of_class.max, 0.0F));
  }
  for (const Pooled& map : pool_maps(feature_maps, weights_for(shape.feature_map_side), pool)) {
    *next++ = map.mean;
  }
  next = std::copy(image.statistics.begin(), image.statistics.end(), next);
  const Regions regions = region_statistics(image.thumbnail, of_thumbnail, pool);
  next = std::copy(regions.inside.begin(), regions.inside.end(), next);
  std::copy(regions.outside.begin(), regions.outside.end(), next);
}

}  // namespace cutout
