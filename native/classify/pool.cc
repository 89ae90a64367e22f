#include "classify/pool.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/simd.h"
#include "image/taps.h"

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

/// Share of sample `j` in cell `i` of one axis.
double share(int i, int j, int in, int out) {
  const double scale = static_cast<double>(in) / out;
  if (out <= in) {
    return std::max(0.0, std::min((i + 1) * scale, j + 1.0) - std::max(i * scale, 1.0 * j)) / scale;
  }
  const double centre = std::clamp((i + 0.5) * scale - 0.5, 0.0, in - 1.0);
  return std::max(0.0, 1 - std::abs(centre - j));
}

}  // namespace

void reduce_map(std::span<const float> map, int width, int height, int out_width, int out_height,
                std::span<float> out) {
  const Taps rows = area_taps(height, out_height);
  const Taps columns = area_taps(width, out_width);
  const auto stride = static_cast<std::size_t>(width);
  std::vector<float> row(stride);
  for (int y = 0; y < out_height; ++y) {
    std::fill(row.begin(), row.end(), 0.0F);
    const auto i = static_cast<std::size_t>(y);
    for (int k = 0; k < rows.count[i]; ++k) {
      const float weight = rows.of(y)[k];
      const float* const from = map.data() + static_cast<std::size_t>(rows.first[i] + k) * stride;
      for (std::size_t x = 0; x < stride; ++x) row[x] += weight * from[x];
    }
    float* const to = out.data() + i * static_cast<std::size_t>(out_width);
    for (int x = 0; x < out_width; ++x) {
      const auto j = static_cast<std::size_t>(x);
      const float* const from = row.data() + columns.first[j];
      float sum = 0;
      for (int k = 0; k < columns.count[j]; ++k) sum += columns.of(x)[k] * from[k];
      to[x] = sum;
    }
  }
}

void reduce_map_scalar(std::span<const float> map, int width, int height, int out_width,
                       int out_height, std::span<float> out) {
  for (int oy = 0; oy < out_height; ++oy) {
    for (int ox = 0; ox < out_width; ++ox) {
      double sum = 0;
      for (int y = 0; y < height; ++y) {
        const double row = share(oy, y, height, out_height);
        if (row == 0) continue;
        for (int x = 0; x < width; ++x) {
          const auto at = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                          static_cast<std::size_t>(x);
          sum += row * share(ox, x, width, out_width) * static_cast<double>(map[at]);
        }
      }
      out[static_cast<std::size_t>(oy) * static_cast<std::size_t>(out_width) +
          static_cast<std::size_t>(ox)] = static_cast<float>(sum);
    }
  }
}

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
