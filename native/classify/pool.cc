#include "classify/pool.h"

#include <algorithm>
#include <array>

#include "core/simd.h"

namespace cutout {

namespace {

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
