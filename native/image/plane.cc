#include "image/plane.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/simd.h"
#include "image/taps.h"

namespace cutout {

namespace {

constexpr std::size_t kGrain = 16;  // rows of the output

CUTOUT_SIMD void add_row(const float* __restrict from, float weight, int n, float* __restrict to) {
  for (int i = 0; i < n; ++i) to[i] += weight * from[i];
}

}  // namespace

void resize_plane(std::span<const float> plane, int in_width, int in_height, int width, int height,
                  std::span<float> out, ThreadPool& pool) {
  const Taps rows = area_taps(in_height, height);
  const Taps columns = area_taps(in_width, width);
  const auto in = static_cast<std::size_t>(in_width);
  const auto across = static_cast<std::size_t>(width);
  const auto body = [&](std::size_t begin, std::size_t end) {
    std::vector<float> scratch(in);
    for (std::size_t y = begin; y < end; ++y) {
      const std::span<float> line =
          in == across ? out.subspan(y * across, across) : std::span<float>(scratch);
      std::ranges::fill(line, 0.0F);
      for (int k = 0; k < rows.count[y]; ++k) {
        add_row(plane.data() + static_cast<std::size_t>(rows.first[y] + k) * in,
                rows.of(static_cast<int>(y))[k], in_width, line.data());
      }
      if (in == across) continue;  // the row as it is
      for (std::size_t x = 0; x < across; ++x) {
        float sum = 0;
        for (int k = 0; k < columns.count[x]; ++k) {
          sum += columns.of(static_cast<int>(x))[k] *
                 line[static_cast<std::size_t>(columns.first[x] + k)];
        }
        out[y * across + x] = sum;
      }
    }
  };
  pool.parallel_for(static_cast<std::size_t>(height), kGrain, body);
}

}  // namespace cutout
