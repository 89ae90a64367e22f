#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "classify/statistics.h"
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

/// Shapes of the detector's outputs for one image.
struct DetectorShape {
  int classes = 0;       // maps of the class output
  int heatmap_side = 0;  // of each of them
  int channels = 0;      // maps of the feature output
  int feature_map_side = 0;
};

/// A matte of any size: values 0..1, rows without padding.
struct Matte {
  std::span<const float> alpha;
  int width = 0;
  int height = 0;
};

/// Measures of an image that do not depend on its matte.
struct ImageStatistics {
  Statistics statistics{};
  Thumbnail thumbnail;
};

/// Number of features, the head's inputs. In this order:
///   1. for every class, the square root of the largest probability times matte
///   2. for every feature map, its mean under the matte
///   3. Statistics of the image
///   4. RegionStatistics inside the matte, then outside
std::size_t feature_count(const DetectorShape& shape);

/// Writes the features to `features`, feature_count(shape) of them. `heatmaps` and `feature_maps`
/// are the detector's outputs.
///
/// | limit   |                                                                   |
/// |---------|-------------------------------------------------------------------|
/// | values  | heatmaps 0..1; feature_maps finite; sizes as `shape` says         |
/// | threads | the pool; same bits                                               |
void join_features(const DetectorShape& shape, std::span<const float> heatmaps,
                   std::span<const float> feature_maps, const ImageStatistics& image,
                   const Matte& matte, ThreadPool& pool, std::span<float> features);

}  // namespace cutout
