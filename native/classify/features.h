#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "classify/statistics.h"
#include "core/thread_pool.h"

namespace cutout {

/// Shapes of what the detector gives, for one picture.
struct DetectorShape {
  int kinds = 0;      // maps of the class output
  int heat_side = 0;  // of each of them
  int channels = 0;   // maps of the feature output
  int deep_side = 0;
};

/// Where the subject is: a matte of any size, values 0..1, dense.
struct Matte {
  std::span<const float> alpha;
  int width = 0;
  int height = 0;
};

/// What is known of a picture before its matte.
struct Look {
  Statistics statistics{};
  Thumbnail thumbnail;
};

/// The numbers the head looks at, in this order:
///   1. for every kind, the square root of the largest probability times matte
///   2. for every feature map, its mean under the matte
///   3. Statistics of the picture
///   4. RegionStatistics under the matte, then beside it
std::size_t feature_count(const DetectorShape& shape);

/// Writes them into `features`, which has feature_count(shape) places. `heat` and `deep` are the
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
