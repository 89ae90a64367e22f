#include "matte/blur.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numbers>
#include <vector>

#include "matte/guide.h"
#include "matte/math/certainty.h"

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 64;  // rows of network pixels
constexpr int kFineness = 1024;        // histogram bins for a slope of 1 per network pixel
constexpr int kSlopes = 725;           // bins; the greatest possible slope is sqrt(1/2)
constexpr std::size_t kShare = 1000;   // 1 / kShare of the slopes, at least kFewest, are steeper
constexpr std::size_t kFewest = 8;

/// Bin of the slope at a network pixel that is not at the border; -1 where it is certain.
inline int slope_at(const float* p, std::ptrdiff_t width) {
  if (!(*p >= kCertainBackground && *p <= kCertainForeground)) return -1;
  const float across = (clamp01(p[1]) - clamp01(p[-1])) * 0.5F;
  const float down = (clamp01(p[width]) - clamp01(p[-width])) * 0.5F;
  return std::min(static_cast<int>(std::sqrt(across * across + down * down) * kFineness),
                  kSlopes - 1);
}

/// Rank, from the steepest, of the slope that is used out of `soft`.
inline std::size_t rank_of(std::size_t soft) {
  return std::min(soft - 1, std::max(kFewest, soft / kShare));
}

/// Sigma from the slope of a blurred step, which is at most 1 / (sigma sqrt(2 pi)), limited
/// (blur.h).
inline float blur_by(int slope) {
  const double steepness = (slope + 0.5) / kFineness;
  const auto sigma = static_cast<float>(1.0 / (steepness * std::sqrt(2.0 * std::numbers::pi)));
  if (sigma > kMaxBlur) {
    return std::max(kMinBlur, kMaxBlur - (kMaxBlur - kMinBlur) * (sigma - kMaxBlur));
  }
  return std::max(sigma, kMinBlur);
}

}  // namespace

float estimate_blur(std::span<const float> p, int width, int height, ThreadPool& pool) {
  if (width < 3 || height < 3) return kMinBlur;
  using Counts = std::array<std::uint32_t, kSlopes>;
  Counts counts{};
  std::mutex adding;
  pool.parallel_for(static_cast<std::size_t>(height - 2), kRowGrain,
                    [&](std::size_t begin, std::size_t end) {
                      Counts own{};
                      for (std::size_t y = begin + 1; y < end + 1; ++y) {
                        const float* row = p.data() + y * static_cast<std::size_t>(width);
                        for (int x = 1; x < width - 1; ++x) {
                          const int slope = slope_at(row + x, width);
                          if (slope >= 0) ++own[static_cast<std::size_t>(slope)];
                        }
                      }
                      const std::scoped_lock lock(adding);
                      for (std::size_t i = 0; i < own.size(); ++i) counts[i] += own[i];
                    });
  std::size_t soft = 0;
  for (const std::uint32_t count : counts) soft += count;
  if (soft == 0) return kMinBlur;
  std::size_t steeper = rank_of(soft);
  int slope = kSlopes - 1;
  while (counts[static_cast<std::size_t>(slope)] <= steeper) {
    steeper -= counts[static_cast<std::size_t>(slope)];
    --slope;
  }
  return blur_by(slope);
}

float estimate_blur_scalar(std::span<const float> p, int width, int height) {
  std::vector<int> slopes;
  for (int y = 1; y < height - 1; ++y) {
    for (int x = 1; x < width - 1; ++x) {
      const int slope = slope_at(p.data() + static_cast<std::ptrdiff_t>(y) * width + x, width);
      if (slope >= 0) slopes.push_back(slope);
    }
  }
  if (slopes.empty()) return kMinBlur;
  std::sort(slopes.begin(), slopes.end(), std::greater<>());
  return blur_by(slopes[rank_of(slopes.size())]);
}

}  // namespace cutout
