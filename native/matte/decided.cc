#include "matte/decided.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/simd.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows
constexpr float kSure = 0.5F;
constexpr float kLow = 0.1F;
constexpr float kHigh = 0.9F;

struct Counts {
  int sure = 0;     // at least 1/2
  int between = 0;  // neither low nor high
};

CUTOUT_SIMD Counts count(const float* p, int n) {
  Counts counts;
  for (int x = 0; x < n; ++x) {
    counts.sure += static_cast<int>(p[x] >= kSure);
    counts.between += static_cast<int>(p[x] > kLow) & static_cast<int>(p[x] < kHigh);
  }
  return counts;
}

bool decided(std::int64_t sure, std::int64_t between) {
  return sure > 0 && 5 * between <= 3 * sure;
}

}  // namespace

bool is_decided(std::span<const float> p, int width, const Box& area, ThreadPool& pool) {
  std::atomic<std::int64_t> sure{0};
  std::atomic<std::int64_t> between{0};
  pool.parallel_for(static_cast<std::size_t>(area.height), kGrain,
                    [&](std::size_t begin, std::size_t end) {
                      for (std::size_t y = begin; y < end; ++y) {
                        const auto row = static_cast<std::ptrdiff_t>(y) + area.top;
                        const Counts counts = count(p.data() + row * width + area.left, area.width);
                        sure += counts.sure;
                        between += counts.between;
                      }
                    });
  return decided(sure, between);
}

bool is_decided_scalar(std::span<const float> p, int width, const Box& area) {
  std::int64_t sure = 0;
  std::int64_t between = 0;
  for (int y = area.top; y < area.top + area.height; ++y) {
    for (int x = area.left; x < area.left + area.width; ++x) {
      const float value = p[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(x)];
      if (value >= kSure) ++sure;
      if (value > kLow && value < kHigh) ++between;
    }
  }
  return decided(sure, between);
}

}  // namespace cutout
