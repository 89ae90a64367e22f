#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "classify/statistics.h"
#include "core/thread_pool.h"

namespace cutout {

/// Shapes of the detector's outputs for one image.
struct DetectorShape {
  int kinds = 0;      // maps of the class output
  int heat_side = 0;  // of each of them
  int channels = 0;   // maps of the feature output
  int deep_side = 0;
};

/// A matte of any size: values 0..1, rows without padding.
struct Matte {
  std::span<const float> alpha;
  int width = 0;
  int height = 0;
};

/// Measures of an image that do not depend on its matte.
struct Look {
  Statistics statistics{};
  Thumbnail thumbnail;
};

/// Number of features, the head's inputs. In this order:
///   1. for every kind, the square root of the largest probability times matte
///   2. for every feature map, its mean under the matte
///   3. Statistics of the image
///   4. RegionStatistics inside the matte, then outside
std::size_t feature_count(const DetectorShape& shape);

/// Writes the features to `features`, feature_count(shape) of them. `heat` and `deep` are the
/// detector's outputs.
///
/// | limit   |                                                                   |
/// |---------|-------------------------------------------------------------------|
/// | values  | heat 0..1; deep finite; sizes as `shape` says                     |
/// | threads | the pool; same bits                                               |
void join_features(const DetectorShape& shape, std::span<const float> heat,
                   std::span<const float> deep, const Look& look, const Matte& matte,
                   ThreadPool& pool, std::span<float> features);

}  // namespace cutout
