#include "classify/features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/simd.h"
#include "image/plane.h"

namespace cutout {

namespace {

std::vector<float> weights_of(const Matte& matte, int side, ThreadPool& pool) {
  const auto n = static_cast<std::size_t>(side);
  std::vector<float> weights(n * n);
  resize_plane(matte.alpha, matte.width, matte.height, side, side, weights, pool);
  return weights;
}

constexpr std::size_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

/// The number of values that one task of the thread pool reads, at least one map.
constexpr std::size_t kValuesPerTask = 1 << 17;

/// Sum of the weights below which all of them count as 1.
constexpr double kMinWeight = 1e-6;

struct Sums {
  Lanes sum{};
  Lanes max{};
};

/// Pools whole groups of kLanes values.
CUTOUT_SIMD void pool_groups(const float* __restrict values, const float* __restrict weights,
                             std::size_t groups, Sums& sums) {
  Lanes sum = sums.sum;
  Lanes max = sums.max;
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float product = values[g * kLanes + l] * weights[g * kLanes + l];
      sum[l] += product;
      max[l] = product > max[l] ? product : max[l];
    }
  }
  sums = {sum, max};
}

Pooled pool_one(const float* values, const float* weights, std::size_t n, double weight_sum) {
  Sums sums;
  sums.max.fill(values[0] * weights[0]);
  const std::size_t groups = n / kLanes;
  pool_groups(values, weights, groups, sums);
  for (std::size_t i = groups * kLanes; i < n; ++i) {
    const float product = values[i] * weights[i];
    sums.sum[0] += product;
    sums.max[0] = std::max(sums.max[0], product);
  }
  float total = 0;
  for (const float lane : sums.sum) total += lane;
  return {total / static_cast<float>(weight_sum), *std::ranges::max_element(sums.max)};
}

double sum_of(std::span<const float> weights) {
  double sum = 0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  return sum;
}

/// The weights, or ones where their sum is below kMinWeight.
std::vector<float> effective_weights(std::span<const float> weights) {
  if (sum_of(weights) >= kMinWeight) return {weights.begin(), weights.end()};
  return std::vector<float>(weights.size(), 1.0F);
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

std::vector<Pooled> pool_maps(std::span<const float> maps, std::span<const float> weights,
                              ThreadPool& pool) {
  const std::size_t n = weights.size();
  const std::vector<float> effective = effective_weights(weights);
  const double weight_sum = sum_of(effective);
  std::vector<Pooled> pooled(maps.size() / n);
  pool.for_each(pooled.size(), std::max<std::size_t>(kValuesPerTask / n, 1), [&](std::size_t m) {
    pooled[m] = pool_one(maps.data() + m * n, effective.data(), n, weight_sum);
  });
  return pooled;
}

}  // namespace cutout
