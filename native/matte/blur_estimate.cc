#include "matte/blur_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numbers>

#include "matte/math/blur_estimate.h"

namespace cutout {

namespace {

constexpr std::size_t kRowGrain = 64;  // rows of network pixels

}  // namespace

float blur_of_slope(int slope) {
  if (slope < 0) return kMinBlur;
  const double steepness = (slope + 0.5) / kSlopeScale;
  const auto sigma = static_cast<float>(1.0 / (steepness * std::sqrt(2.0 * std::numbers::pi)));
  if (sigma > kMaxBlur) {
    return std::max(kMinBlur, kMaxBlur - (kMaxBlur - kMinBlur) * (sigma - kMaxBlur));
  }
  return std::max(sigma, kMinBlur);
}

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
  return blur_of_slope(used_slope(counts.data()));
}

}  // namespace cutout
