#include "classify/pool.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr std::size_t kLanes = 16;
using Lanes = std::array<float, kLanes>;

/// Sum of the weights below which a map counts as unweighted.
constexpr double kNoWeight = 1e-6;

float total(const Lanes& lanes) {
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

float largest(const Lanes& lanes) { return *std::max_element(lanes.begin(), lanes.end()); }

struct Sums {
  Lanes weighted{};
  Lanes plain{};
  Lanes weighted_max{};
  Lanes max{};
};

/// Whole groups of kLanes; the rest is the caller's.
CUTOUT_SIMD void pool_groups(const float* __restrict values, const float* __restrict weights,
                             std::size_t groups, Sums& sums) {
  Lanes weighted = sums.weighted;
  Lanes plain = sums.plain;
  Lanes weighted_max = sums.weighted_max;
  Lanes max = sums.max;
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float value = values[g * kLanes + l];
      const float product = value * weights[g * kLanes + l];
      weighted[l] += product;
      plain[l] += value;
      weighted_max[l] = product > weighted_max[l] ? product : weighted_max[l];
      max[l] = value > max[l] ? value : max[l];
    }
  }
  sums = {weighted, plain, weighted_max, max};
}

Pooled pool_one(const float* values, const float* weights, std::size_t n, double weight) {
  Sums sums;
  sums.max.fill(values[0]);
  sums.weighted_max.fill(values[0] * weights[0]);
  const std::size_t groups = n / kLanes;
  pool_groups(values, weights, groups, sums);
  for (std::size_t i = groups * kLanes; i < n; ++i) {
    const float product = values[i] * weights[i];
    sums.weighted[0] += product;
    sums.plain[0] += values[i];
    sums.weighted_max[0] = std::max(sums.weighted_max[0], product);
    sums.max[0] = std::max(sums.max[0], values[i]);
  }
  Pooled pooled;
  pooled.mean = total(sums.plain) / static_cast<float>(n);
  pooled.weighted_mean =
      weight < kNoWeight ? pooled.mean : total(sums.weighted) / static_cast<float>(weight);
  pooled.weighted_max = largest(sums.weighted_max);
  pooled.max = largest(sums.max);
  return pooled;
}

double sum_of(std::span<const float> weights) {
  double sum = 0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  return sum;
}

}  // namespace

std::vector<Pooled> pool_maps(std::span<const float> maps, std::span<const float> weights) {
  const std::size_t n = weights.size();
  const double weight = sum_of(weights);
  std::vector<Pooled> pooled(maps.size() / n);
  for (std::size_t m = 0; m < pooled.size(); ++m) {
    pooled[m] = pool_one(maps.data() + m * n, weights.data(), n, weight);
  }
  return pooled;
}

std::vector<Pooled> pool_maps_scalar(std::span<const float> maps, std::span<const float> weights) {
  const std::size_t n = weights.size();
  const double weight = sum_of(weights);
  std::vector<Pooled> pooled(maps.size() / n);
  for (std::size_t m = 0; m < pooled.size(); ++m) {
    const std::span<const float> map = maps.subspan(m * n, n);
    double weighted = 0;
    double plain = 0;
    pooled[m].weighted_max = map[0] * weights[0];
    pooled[m].max = map[0];
    for (std::size_t i = 0; i < n; ++i) {
      weighted += static_cast<double>(map[i]) * static_cast<double>(weights[i]);
      plain += static_cast<double>(map[i]);
      pooled[m].weighted_max = std::max(pooled[m].weighted_max, map[i] * weights[i]);
      pooled[m].max = std::max(pooled[m].max, map[i]);
    }
    pooled[m].mean = static_cast<float>(plain / static_cast<double>(n));
    pooled[m].weighted_mean =
        weight < kNoWeight ? pooled[m].mean : static_cast<float>(weighted / weight);
  }
  return pooled;
}

}  // namespace cutout
