#include "matte/confident.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/simd.h"
#include "matte/math/certainty.h"
#include "matte/math/confident.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 64;  // rows

struct Counts {
  int foreground = 0;  // p >= kForegroundThreshold
  int ambiguous = 0;
};

CUTOUT_SIMD Counts count(const float* p, int n) {
  Counts counts;
  for (int x = 0; x < n; ++x) {
    counts.foreground += static_cast<int>(p[x] >= kForegroundThreshold);
    counts.ambiguous += static_cast<int>(is_ambiguous(p[x]));
  }
  return counts;
}

}  // namespace

bool is_confident(std::span<const float> p, int width, const Box& area, ThreadPool& pool) {
  std::atomic<std::int64_t> foreground{0};
  std::atomic<std::int64_t> ambiguous{0};
  pool.parallel_for(static_cast<std::size_t>(area.height), kGrain,
                    [&](std::size_t begin, std::size_t end) {
                      for (std::size_t y = begin; y < end; ++y) {
                        const auto row = static_cast<std::ptrdiff_t>(y) + area.top;
                        const Counts counts = count(p.data() + row * width + area.left, area.width);
                        foreground += counts.foreground;
                        ambiguous += counts.ambiguous;
                      }
                    });
  return few_are_ambiguous(foreground, ambiguous);
}

}  // namespace cutout
